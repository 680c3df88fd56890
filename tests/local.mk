# Unit tests in Check link libcore.la, so that they see the internals.

# lib/boot and collrun
check_PROGRAMS += tests/boot_probe
dist_check_SCRIPTS += %D%/collrun.test %D%/boot_launch.test
TESTS += %D%/collrun.test %D%/boot_launch.test
tests_boot_probe_LDADD = libcore.la
if HAVE_CHECK
check_PROGRAMS += tests/test_ctrl tests/test_boot
TESTS += tests/test_ctrl tests/test_boot
tests_test_ctrl_SOURCES = %D%/test_ctrl.c %D%/boot_world.c %D%/boot_world.h
tests_test_ctrl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_ctrl_LDADD = libcore.la $(CHECK_LIBS)
tests_test_boot_SOURCES = %D%/test_boot.c %D%/boot_world.c %D%/boot_world.h
tests_test_boot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_boot_LDADD = libcore.la $(CHECK_LIBS)
endif
