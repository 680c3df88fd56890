# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
if HAVE_CUDA
unit_tests += tests/exec/test_relay
tests_exec_test_relay_SOURCES = %D%/test_relay.c $(stream_fixture) \
	%D%/stream_fixture.c %D%/stream_fixture.h
tests_exec_test_relay_CFLAGS = $(fake_cflags)
tests_exec_test_relay_LDADD = $(stream_lib)
EXTRA_tests_exec_test_relay_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/exec/test_stream_engine
tests_exec_test_stream_engine_SOURCES = %D%/test_stream_engine.c $(stream_fixture) \
	%D%/every_algorithm.c %D%/every_algorithm.h %D%/stream_fixture.c %D%/stream_fixture.h
tests_exec_test_stream_engine_CFLAGS = $(fake_cflags)
tests_exec_test_stream_engine_LDADD = $(stream_lib)
EXTRA_tests_exec_test_stream_engine_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/exec/test_proxy
tests_exec_test_proxy_SOURCES = %D%/test_proxy.c $(stream_fixture) \
	%D%/every_algorithm.c %D%/every_algorithm.h %D%/stream_fixture.c %D%/stream_fixture.h
tests_exec_test_proxy_CFLAGS = $(fake_cflags)
tests_exec_test_proxy_LDADD = $(stream_lib)
EXTRA_tests_exec_test_proxy_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif
unit_tests += tests/exec/test_listed
tests_exec_test_listed_CFLAGS = $(check_cflags)
tests_exec_test_listed_LDADD = libworld.la $(check_lib)
unit_tests += tests/exec/test_sleep
tests_exec_test_sleep_SOURCES = %D%/test_sleep.c tests/support/forbid.c tests/support/forbid.h
tests_exec_test_sleep_CFLAGS = $(check_cflags)
tests_exec_test_sleep_LDADD = libworld.la $(check_lib)
endif
