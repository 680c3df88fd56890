# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/proof/test_slots
tests_proof_test_slots_CFLAGS = $(check_cflags)
tests_proof_test_slots_LDADD = $(check_lib)
unit_tests += tests/proof/test_book
tests_proof_test_book_CFLAGS = $(check_cflags)
tests_proof_test_book_LDADD = libworld.la $(check_lib)
unit_tests += tests/proof/test_odd_orders
tests_proof_test_odd_orders_CFLAGS = $(check_cflags)
tests_proof_test_odd_orders_LDADD = libworld.la $(check_lib)
endif
