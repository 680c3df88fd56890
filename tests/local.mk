# Unit tests in Check link libcore.la, so that they see the internals.
if HAVE_CHECK
check_PROGRAMS += tests/test_plan
tests_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_plan_LDADD = libcore.la $(CHECK_LIBS)

TESTS += $(check_PROGRAMS)
endif
