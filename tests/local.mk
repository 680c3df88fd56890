# Unit tests in Check link libcore.la, so that they see the internals.
if HAVE_CHECK

# plans, passes, selection
check_PROGRAMS += tests/test_plan
tests_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_plan_LDADD = libcore.la $(CHECK_LIBS)

# reduction kernels
check_PROGRAMS += tests/test_reduce
tests_test_reduce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_reduce_LDADD = libcore.la $(CHECK_LIBS)

endif
TESTS += $(check_PROGRAMS)
