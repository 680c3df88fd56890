# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/algo/test_algo
tests_algo_test_algo_CFLAGS = $(check_cflags)
tests_algo_test_algo_LDADD = $(check_lib)
endif
