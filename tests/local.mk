# Unit tests in Check link libcore.la, so that they see the internals.

# lib/boot and collrun
if HAVE_CHECK
check_PROGRAMS += tests/test_ctrl
TESTS += tests/test_ctrl
tests_test_ctrl_SOURCES = %D%/test_ctrl.c %D%/boot_world.c %D%/boot_world.h
tests_test_ctrl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_ctrl_LDADD = libcore.la $(CHECK_LIBS)
endif
