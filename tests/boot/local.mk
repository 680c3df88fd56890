# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/boot/test_boot
tests_boot_test_boot_SOURCES = %D%/test_boot.c $(boot_world)
tests_boot_test_boot_CFLAGS = $(check_cflags)
tests_boot_test_boot_LDADD = $(check_lib)
unit_tests += tests/boot/test_rendezvous
tests_boot_test_rendezvous_SOURCES = %D%/test_rendezvous.c $(boot_world)
tests_boot_test_rendezvous_CFLAGS = $(check_cflags)
tests_boot_test_rendezvous_LDADD = $(check_lib)
unit_tests += tests/boot/test_hostlist
tests_boot_test_hostlist_CFLAGS = $(check_cflags)
tests_boot_test_hostlist_LDADD = $(check_lib)
unit_tests += tests/boot/test_launch
tests_boot_test_launch_CFLAGS = $(check_cflags)
tests_boot_test_launch_LDADD = libworld.la $(check_lib)
unit_tests += tests/boot/test_scale
tests_boot_test_scale_CFLAGS = $(check_cflags)
tests_boot_test_scale_LDADD = $(check_lib)
unit_tests += tests/boot/test_join
tests_boot_test_join_CFLAGS = $(check_cflags)
tests_boot_test_join_LDADD = libworld.la $(check_lib)
unit_tests += tests/boot/test_handles
tests_boot_test_handles_CFLAGS = $(check_cflags)
tests_boot_test_handles_LDADD = libworld.la $(check_lib)
endif
check_PROGRAMS += tests/boot/boot_probe
tests_boot_boot_probe_LDADD = libcore.la
check_PROGRAMS += tests/boot/rank_starts
tests_boot_rank_starts_LDADD = libcoll.la
scripts += %D%/boot_launch.test %D%/rank_child.test
