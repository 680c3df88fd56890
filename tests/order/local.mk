# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/overlap.md
if HAVE_CHECK
unit_tests += tests/order/test_overlap
tests_order_test_overlap_CFLAGS = $(check_cflags)
tests_order_test_overlap_LDADD = $(check_lib)
unit_tests += tests/order/test_slot_order
tests_order_test_slot_order_CFLAGS = $(check_cflags)
tests_order_test_slot_order_LDADD = $(check_lib)
endif
