# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
if HAVE_CUDA
unit_tests += tests/transports/test_cuda_ipc
tests_transports_test_cuda_ipc_SOURCES = %D%/test_cuda_ipc.c $(stream_fixture)
tests_transports_test_cuda_ipc_CFLAGS = $(fake_cflags)
tests_transports_test_cuda_ipc_LDADD = $(stream_lib)
EXTRA_tests_transports_test_cuda_ipc_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif

# transports: one suite for all of them, and what arrives over UCX
unit_tests += tests/transports/conform
tests_transports_conform_SOURCES = %D%/conform.c %D%/conform.h %D%/conform_channel.c \
	%D%/conform_data.c %D%/conform_end.c %D%/conform_far.c %D%/conform_far.h \
	%D%/conform_rails.c %D%/conform_script.c %D%/conform_share.c \
	%D%/conform_sleep.c %D%/conform_world.c
tests_transports_conform_CFLAGS = $(check_cflags)
tests_transports_conform_LDADD = $(check_lib)
unit_tests += tests/transports/test_shm
tests_transports_test_shm_SOURCES = %D%/test_shm.c %D%/conform.h %D%/conform_data.c \
	%D%/conform_far.c %D%/conform_far.h %D%/conform_share.c %D%/conform_world.c
tests_transports_test_shm_CFLAGS = $(check_cflags)
tests_transports_test_shm_LDADD = $(check_lib)
unit_tests += tests/transports/test_bell
tests_transports_test_bell_SOURCES = %D%/test_bell.c %D%/conform.h %D%/conform_data.c \
	%D%/conform_far.c %D%/conform_far.h %D%/conform_world.c tests/support/forbid.c \
	tests/support/forbid.h
tests_transports_test_bell_CFLAGS = $(check_cflags)
tests_transports_test_bell_LDADD = $(check_lib)
unit_tests += tests/transports/test_cma
tests_transports_test_cma_SOURCES = %D%/test_cma.c tests/support/forbid.c tests/support/forbid.h
tests_transports_test_cma_CFLAGS = $(check_cflags)
tests_transports_test_cma_LDADD = $(check_lib)
unit_tests += tests/transports/test_ucx
tests_transports_test_ucx_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_LDADD = $(check_lib)
unit_tests += tests/transports/test_tcp_card
tests_transports_test_tcp_card_CFLAGS = $(check_cflags)
tests_transports_test_tcp_card_LDADD = $(check_lib)

unit_tests += tests/transports/test_tcp_call
tests_transports_test_tcp_call_CFLAGS = $(check_cflags)
tests_transports_test_tcp_call_LDADD = $(check_lib)
unit_tests += tests/transports/test_ucx_open
tests_transports_test_ucx_open_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_open_LDADD = libworld.la $(check_lib)
unit_tests += tests/transports/test_ucx_share
tests_transports_test_ucx_share_CFLAGS = $(check_cflags)
tests_transports_test_ucx_share_LDADD = libworld.la $(check_lib)
unit_tests += tests/transports/test_ucx_end
tests_transports_test_ucx_end_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_end_LDADD = libworld.la $(check_lib)
tests_transports_test_ucx_end_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime

# tests/tools/coll_info.sh: another UCX is loaded than the one that was built with
check_LTLIBRARIES += tests/transports/libother_ucx.la
tests_transports_libother_ucx_la_SOURCES = %D%/other_ucx.c
tests_transports_libother_ucx_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_transports_libother_ucx_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all
endif
if HAVE_CUDA
check_PROGRAMS += tests/transports/ucx_device
tests_transports_ucx_device_SOURCES = %D%/ucx_device.c
tests_transports_ucx_device_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS) $(UCX_CFLAGS)
tests_transports_ucx_device_LDADD = tests/fake_cuda/libcuda.la $(UCX_LIBS)
endif
scripts += %D%/shm.sh
