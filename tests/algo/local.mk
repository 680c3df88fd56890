# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/algo/test_algo
tests_algo_test_algo_CFLAGS = $(check_cflags)
tests_algo_test_algo_LDADD = $(check_lib)
EXTRA_DIST += %D%/overlap.md
unit_tests += tests/algo/test_overlap
tests_algo_test_overlap_CFLAGS = $(check_cflags)
tests_algo_test_overlap_LDADD = $(check_lib)
endif
