# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
if HAVE_CUDA
unit_tests += tests/stream/test_levels
tests_stream_test_levels_SOURCES = %D%/test_levels.c $(fake_image)
tests_stream_test_levels_CFLAGS = $(fake_cflags)
tests_stream_test_levels_LDADD = $(fake_lib)
EXTRA_tests_stream_test_levels_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_captured
tests_stream_test_cuda_captured_SOURCES = %D%/test_cuda_captured.c $(fake_image)
tests_stream_test_cuda_captured_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_captured_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_captured_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_staged
tests_stream_test_cuda_staged_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_staged_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_staged_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cut
tests_stream_test_cut_CFLAGS = $(check_cflags)
tests_stream_test_cut_LDADD = $(check_lib)
unit_tests += tests/stream/test_cuda_wrong
tests_stream_test_cuda_wrong_SOURCES = %D%/test_cuda_wrong.c $(fake_image)
tests_stream_test_cuda_wrong_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_wrong_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_wrong_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_kernel
tests_stream_test_cuda_kernel_SOURCES = %D%/test_cuda_kernel.c $(fake_image)
tests_stream_test_cuda_kernel_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_kernel_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_kernel_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_check
tests_stream_test_cuda_check_SOURCES = %D%/test_cuda_check.c $(fake_image)
tests_stream_test_cuda_check_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_check_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_check_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_check_messages
tests_stream_test_cuda_check_messages_SOURCES = %D%/test_cuda_check_messages.c $(fake_image)
tests_stream_test_cuda_check_messages_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_check_messages_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_check_messages_DEPENDENCIES = tests/fake_cuda/libcuda.la
registered = %D%/registered.c %D%/registered.h $(fake_image)

unit_tests += tests/stream/test_cuda_register
tests_stream_test_cuda_register_SOURCES = %D%/test_cuda_register.c $(registered)
tests_stream_test_cuda_register_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_register_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_register_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/stream/test_cuda_mixed
tests_stream_test_cuda_mixed_SOURCES = %D%/test_cuda_mixed.c $(registered)
tests_stream_test_cuda_mixed_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_mixed_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_mixed_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/stream/test_cuda_shown
tests_stream_test_cuda_shown_SOURCES = %D%/test_cuda_shown.c $(registered)
tests_stream_test_cuda_shown_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_shown_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_shown_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_orders
tests_stream_test_cuda_orders_SOURCES = %D%/test_cuda_orders.c $(fake_image)
tests_stream_test_cuda_orders_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_orders_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_orders_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_watch
tests_stream_test_cuda_watch_SOURCES = %D%/test_cuda_watch.c $(fake_image)
tests_stream_test_cuda_watch_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_watch_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_watch_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_memory
tests_stream_test_cuda_memory_SOURCES = %D%/test_cuda_memory.c $(fake_image)
tests_stream_test_cuda_memory_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_memory_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_memory_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_again
tests_stream_test_cuda_again_SOURCES = %D%/test_cuda_again.c $(fake_image)
tests_stream_test_cuda_again_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_again_LDADD = $(fake_lib)
tests_stream_test_cuda_again_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=coll__request_choose
EXTRA_tests_stream_test_cuda_again_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_apart
tests_stream_test_cuda_apart_SOURCES = %D%/test_cuda_apart.c $(fake_image)
tests_stream_test_cuda_apart_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_apart_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_apart_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_messages
tests_stream_test_cuda_messages_SOURCES = %D%/test_cuda_messages.c $(fake_image)
tests_stream_test_cuda_messages_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_messages_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_messages_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif
endif
