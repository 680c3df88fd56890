# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/trace/test_log
tests_trace_test_log_CFLAGS = $(check_cflags)
tests_trace_test_log_LDADD = libworld.la $(check_lib)
endif
check_PROGRAMS += tests/trace/trace_probe
tests_trace_trace_probe_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_trace_trace_probe_LDADD = libcoll.la $(JANSSON_LIBS)
scripts += %D%/trace.sh %D%/history.sh %D%/metrics.sh
EXTRA_DIST += %D%/traced.sh
