# Unit tests in Check link libcore.la, so that they see the internals.

# lib/boot and collrun
check_PROGRAMS += tests/boot_probe
dist_check_SCRIPTS += %D%/collrun.test %D%/boot_launch.test
TESTS += %D%/collrun.test %D%/boot_launch.test
tests_boot_probe_LDADD = libcore.la
if HAVE_CHECK
boot_tests = tests/test_boot tests/test_rendezvous tests/test_ctrl \
	tests/test_death
boot_world = %D%/boot_world.c %D%/boot_world.h
check_PROGRAMS += $(boot_tests)
TESTS += $(boot_tests)
tests_test_boot_SOURCES = %D%/test_boot.c $(boot_world)
tests_test_boot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_boot_LDADD = libcore.la $(CHECK_LIBS)
tests_test_rendezvous_SOURCES = %D%/test_rendezvous.c $(boot_world)
tests_test_rendezvous_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_rendezvous_LDADD = libcore.la $(CHECK_LIBS)
tests_test_ctrl_SOURCES = %D%/test_ctrl.c $(boot_world)
tests_test_ctrl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_ctrl_LDADD = libcore.la $(CHECK_LIBS)
tests_test_death_SOURCES = %D%/test_death.c $(boot_world)
tests_test_death_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_death_LDADD = libcore.la $(CHECK_LIBS)
endif
