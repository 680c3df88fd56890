# SPDX-License-Identifier: BSD-3-Clause

# the kernels for device memory: on the host by tests/fake_cuda
# (a library: with sanitizers they take minutes to compile; cxx.cc and cxx_pic.cc, which are
# not there, have automake link by the C++ compiler)
if HAVE_CHECK
check_LTLIBRARIES += tests/fake_cuda/libkernels.la
tests_fake_cuda_libkernels_la_SOURCES = benchmarks/bench_kernel.cu \
	%D%/kernels.cc %D%/kernels.h %D%/kernel_entry.h \
	%D%/trainer_kernels.cc \
	%D%/cuda_shim.h %D%/grid.c %D%/grid.h
tests_fake_cuda_libkernels_la_CXXFLAGS = $(AM_CXXFLAGS) -Wno-unknown-pragmas
# libcuda.so.1: a driver of few entries
if HAVE_CUDA
check_LTLIBRARIES += tests/fake_cuda/few/libcuda.la
tests_fake_cuda_few_libcuda_la_SOURCES = %D%/few.c
tests_fake_cuda_few_libcuda_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_fake_cuda_few_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere

# what stands for the kernels where there is no nvcc
if !HAVE_NVCC
fake_image = %D%/image.c
endif
# for tests without kernels
no_image = lib/device/cuda_no_image.c
# libcuda.so.1: a driver without a device (tests/fake_cuda/README.md)
check_LTLIBRARIES += tests/fake_cuda/libcuda.la
tests_fake_cuda_libcuda_la_SOURCES = %D%/fake.h \
	%D%/block.c %D%/call.c %D%/capture.c \
	%D%/context.c %D%/copy.c %D%/counts.c \
	%D%/counts.h %D%/device.c %D%/handles.c \
	%D%/entries.c %D%/errors.c %D%/event.c \
	%D%/fault.c %D%/foreign.c %D%/foreign.h %D%/graph.c %D%/held.c \
	%D%/host.c %D%/ipc.c %D%/memop.c \
	%D%/memory.c %D%/module.c %D%/object.c \
	%D%/pointer.c %D%/pool.c %D%/ptx.c \
	%D%/queue.c %D%/stream.c %D%/vmm.c \
	%D%/work.c
nodist_EXTRA_tests_fake_cuda_libcuda_la_SOURCES = cxx_pic.cc
tests_fake_cuda_libcuda_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_fake_cuda_libcuda_la_LIBADD = tests/fake_cuda/libkernels.la
tests_fake_cuda_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere -Wl,--version-script=$(srcdir)/%D%/exports.map
EXTRA_tests_fake_cuda_libcuda_la_DEPENDENCIES = %D%/exports.map
EXTRA_DIST += %D%/exports.map
# libnvidia-ml.so.1, which a UCX with CUDA is linked to
check_LTLIBRARIES += tests/fake_cuda/libnvidia-ml.la
tests_fake_cuda_libnvidia_ml_la_SOURCES = %D%/nvml.c
tests_fake_cuda_libnvidia_ml_la_CFLAGS = $(AM_CFLAGS)
tests_fake_cuda_libnvidia_ml_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere
fake_cflags = $(check_cflags) $(CUDA_CFLAGS) \
	-DFAKE_CUDA='"$(abs_builddir)/%D%/.libs/libcuda.so.1"'
check_LTLIBRARIES += libfake.la
libfake_la_SOURCES = %D%/fake_fixture.c %D%/fake_fixture.h tests/gpu/gpu.c \
	tests/gpu/gpu.h tests/gpu/gpu_ptx.c tests/support/device_world.c tests/support/device_world.h
libfake_la_CFLAGS = $(fake_cflags)
fake_lib = libfake.la libworld.la $(check_lib) -ldl
unit_tests += tests/fake_cuda/test_fake_cuda tests/fake_cuda/test_fake_graph tests/fake_cuda/test_fake_ipc \
	tests/fake_cuda/test_fake_order
tests_fake_cuda_test_fake_cuda_SOURCES = %D%/test_fake_cuda.c tests/gpu/kernels_driver.c tests/gpu/kernels_driver.h
tests_fake_cuda_test_fake_cuda_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_cuda_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_cuda_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_graph_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_graph_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_graph_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_order_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_order_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_order_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_ipc_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_ipc_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_ipc_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif
endif
if HAVE_CUDA
EXTRA_DIST += %D%/image.c
endif
EXTRA_DIST += %D%/README.md
