# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/price/test_tune
tests_price_test_tune_CFLAGS = $(check_cflags)
tests_price_test_tune_LDADD = $(check_lib)
unit_tests += tests/price/test_choice
tests_price_test_choice_SOURCES = %D%/test_choice.c $(sim_fixture)
tests_price_test_choice_CFLAGS = $(check_cflags)
tests_price_test_choice_LDADD = $(check_lib) -lm
unit_tests += tests/price/test_pairs
tests_price_test_pairs_CFLAGS = $(check_cflags)
tests_price_test_pairs_LDADD = $(check_lib)
unit_tests += tests/price/test_prices
tests_price_test_prices_CFLAGS = $(check_cflags)
tests_price_test_prices_LDADD = $(check_lib) -lm
endif
