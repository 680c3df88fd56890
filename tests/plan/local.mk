# SPDX-License-Identifier: BSD-3-Clause

if HAVE_CHECK
unit_tests += tests/plan/test_load
tests_plan_test_load_CFLAGS = $(check_cflags)
tests_plan_test_load_LDADD = $(check_lib)
unit_tests += tests/plan/test_page
tests_plan_test_page_CFLAGS = $(check_cflags)
tests_plan_test_page_LDADD = $(check_lib)
unit_tests += tests/plan/test_plan
tests_plan_test_plan_CFLAGS = $(check_cflags)
tests_plan_test_plan_LDADD = $(check_lib)
unit_tests += tests/plan/test_edges
tests_plan_test_edges_CFLAGS = $(check_cflags)
tests_plan_test_edges_LDADD = $(check_lib)
unit_tests += tests/plan/test_mutation
tests_plan_test_mutation_CFLAGS = $(check_cflags)
tests_plan_test_mutation_LDADD = $(check_lib)
unit_tests += tests/plan/test_flow
tests_plan_test_flow_CFLAGS = $(check_cflags)
tests_plan_test_flow_LDADD = $(check_lib)
unit_tests += tests/plan/test_forward
tests_plan_test_forward_CFLAGS = $(check_cflags)
tests_plan_test_forward_LDADD = $(check_lib)
endif

# fuzzers, for as long as one likes: tests/plan/fuzz_load -max_len=4096 CORPUS
if HAVE_FUZZERS
check_PROGRAMS += tests/plan/fuzz_load
tests_plan_fuzz_load_LDADD = libcore.la
tests_plan_fuzz_load_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif
