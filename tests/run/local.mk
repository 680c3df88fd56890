# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/run/test_args
tests_run_test_args_CFLAGS = $(check_cflags)
tests_run_test_args_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_average
tests_run_test_average_CFLAGS = $(check_cflags)
tests_run_test_average_LDADD = libworld.la $(check_lib) -lm
unit_tests += tests/run/test_cache
tests_run_test_cache_CFLAGS = $(check_cflags)
tests_run_test_cache_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_scan
tests_run_test_scan_CFLAGS = $(check_cflags)
tests_run_test_scan_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_scratch
tests_run_test_scratch_CFLAGS = $(check_cflags)
tests_run_test_scratch_LDADD = $(check_lib)
unit_tests += tests/run/test_linear
tests_run_test_linear_CFLAGS = $(check_cflags)
tests_run_test_linear_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_group
tests_run_test_group_CFLAGS = $(check_cflags)
tests_run_test_group_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_p2p
tests_run_test_p2p_SOURCES = %D%/test_p2p.c %D%/p2p.h
tests_run_test_p2p_CFLAGS = $(check_cflags)
tests_run_test_p2p_LDADD = libworld.la $(check_lib)
tests_run_test_p2p_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=coll__prog_advance
unit_tests += tests/run/test_p2p_wrong
tests_run_test_p2p_wrong_SOURCES = %D%/test_p2p_wrong.c %D%/p2p.h
tests_run_test_p2p_wrong_CFLAGS = $(check_cflags)
tests_run_test_p2p_wrong_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_background
tests_run_test_background_CFLAGS = $(check_cflags)
tests_run_test_background_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_channel
tests_run_test_channel_CFLAGS = $(check_cflags)
tests_run_test_channel_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_order
tests_run_test_order_CFLAGS = $(check_cflags)
tests_run_test_order_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_hot
tests_run_test_hot_SOURCES = %D%/test_hot.c $(hot)
tests_run_test_hot_CFLAGS = $(check_cflags)
tests_run_test_hot_LDADD = libworld.la $(check_lib)
endif
scripts += %D%/progress.sh %D%/real_time.sh
