# SPDX-License-Identifier: BSD-3-Clause

# the benchmarks' data
if HAVE_CHECK
unit_tests += tests/bench/test_bench
tests_bench_test_bench_CFLAGS = $(check_cflags)
tests_bench_test_bench_LDADD = libbench.la $(check_lib)

# what benchmarks/compare rests on
unit_tests += tests/bench/test_compare
tests_bench_test_compare_CFLAGS = $(check_cflags)
tests_bench_test_compare_LDADD = libpeer.la $(compare_libs) $(CHECK_LIBS)
endif
check_PROGRAMS += tests/bench/prices_probe
tests_bench_prices_probe_LDADD = libcoll.la
check_PROGRAMS += tests/bench/test_crossing
tests_bench_test_crossing_LDADD = libcoll.la
check_PROGRAMS += tests/bench/compare_fake
tests_bench_compare_fake_LDADD = libpeer.la
scripts += %D%/bench.sh %D%/compare.sh %D%/compare_hosts.sh %D%/crossing.sh \
	%D%/prices.sh %D%/train_compare.sh
