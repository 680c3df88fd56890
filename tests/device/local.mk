# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/device/test_copy
tests_device_test_copy_CFLAGS = $(check_cflags)
tests_device_test_copy_LDADD = $(check_lib)
unit_tests += tests/device/test_number
tests_device_test_number_SOURCES = %D%/test_number.c tests/support/element.c tests/support/element.h
tests_device_test_number_CFLAGS = $(check_cflags)
tests_device_test_number_LDADD = $(check_lib) -lm
unit_tests += tests/device/test_reduce
tests_device_test_reduce_SOURCES = %D%/test_reduce.c $(kernel_cases)
tests_device_test_reduce_CFLAGS = $(check_cflags)
tests_device_test_reduce_LDADD = $(check_lib) -lm
unit_tests += tests/device/test_cuda_kernels
tests_device_test_cuda_kernels_SOURCES = %D%/test_cuda_kernels.c $(kernel_cases)
nodist_EXTRA_tests_device_test_cuda_kernels_SOURCES = cxx.cc
tests_device_test_cuda_kernels_CFLAGS = $(check_cflags)
tests_device_test_cuda_kernels_LDADD = tests/fake_cuda/libkernels.la $(check_lib) -lm
unit_tests += tests/device/test_cuda_plan
tests_device_test_cuda_plan_SOURCES = %D%/test_cuda_plan.c $(kernel_cases)
nodist_EXTRA_tests_device_test_cuda_plan_SOURCES = cxx.cc
tests_device_test_cuda_plan_CFLAGS = $(check_cflags)
tests_device_test_cuda_plan_LDADD = tests/fake_cuda/libkernels.la $(check_lib) -lm
if HAVE_CUDA
unit_tests += tests/device/test_cuda_driver
tests_device_test_cuda_driver_CFLAGS = $(check_cflags) $(CUDA_CFLAGS) \
	-DFEW='"$(abs_builddir)/tests/fake_cuda/few/.libs/libcuda.so.1"'
tests_device_test_cuda_driver_LDADD = $(check_lib)
EXTRA_tests_device_test_cuda_driver_DEPENDENCIES = tests/fake_cuda/few/libcuda.la
unit_tests += tests/device/test_cuda_device
tests_device_test_cuda_device_SOURCES = %D%/test_cuda_device.c tests/support/element.c tests/support/element.h
tests_device_test_cuda_device_CFLAGS = $(fake_cflags)
tests_device_test_cuda_device_LDADD = $(fake_lib) -lm
EXTRA_tests_device_test_cuda_device_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/device/test_cuda_buffer
tests_device_test_cuda_buffer_SOURCES = %D%/test_cuda_buffer.c $(fake_image)
tests_device_test_cuda_buffer_CFLAGS = $(fake_cflags)
tests_device_test_cuda_buffer_LDADD = $(fake_lib)
EXTRA_tests_device_test_cuda_buffer_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/device/test_cuda_maps
tests_device_test_cuda_maps_SOURCES = %D%/test_cuda_maps.c $(fake_image)
tests_device_test_cuda_maps_CFLAGS = $(fake_cflags)
tests_device_test_cuda_maps_LDADD = $(fake_lib)
EXTRA_tests_device_test_cuda_maps_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif
unit_tests += tests/device/test_region
tests_device_test_region_CFLAGS = $(check_cflags)
tests_device_test_region_LDADD = libworld.la $(check_lib)
unit_tests += tests/device/test_first_thread
tests_device_test_first_thread_CFLAGS = $(check_cflags)
tests_device_test_first_thread_LDADD = libworld.la $(check_lib)
endif
