# SPDX-License-Identifier: BSD-3-Clause
# libnccl.so.2: NCCL's interface over libcoll.  It has a folder of its own, so that no
# program takes it for NVIDIA's unless that folder is on the loader's path.
if HAVE_CUDA
nccldir = $(libdir)/libcoll/nccl
nccl_LTLIBRARIES = bindings/nccl/libnccl.la
ncclincludedir = $(includedir)/libcoll
ncclinclude_HEADERS = %D%/nccl.h
bindings_nccl_libnccl_la_CFLAGS = $(AM_CFLAGS) -DNCCL_NO_CUDA_RUNTIME $(CUDA_CFLAGS)
bindings_nccl_libnccl_la_SOURCES = \
	%D%/comm.c %D%/comm.h \
	%D%/driver.c %D%/driver.h \
	%D%/group.c %D%/init_all.c %D%/job.c \
	%D%/ops.c %D%/result.c %D%/result.h \
	%D%/split.c %D%/window.c
bindings_nccl_libnccl_la_LIBADD = libcoll.la -ldl -lpthread
# nodelete: as libcoll, whose threads stay.  It finds the libcoll that it was installed
# with, wherever that is.
bindings_nccl_libnccl_la_LDFLAGS = $(AM_LDFLAGS) -version-info 2:0:0 \
	-export-symbols-regex '^p?nccl[A-Z]' -no-undefined -Wl,-z,nodelete \
	'-Wl,-rpath,$$ORIGIN/../..'
# to install it libtool links it to the installed libcoll.  (By the target's name Automake
# would take this for the whole rule.)
install_nccl = install-ncclLTLIBRARIES
$(install_nccl): install-libLTLIBRARIES
endif
EXTRA_DIST += %D%/nccl.h

if HAVE_CUDA
if HAVE_CHECK
nccl_test_sources = %D%/tests/gpus.c %D%/tests/gpus.h tests/fake_cuda/fake_fixture.c \
	tests/gpu/gpu.c tests/gpu/gpu_ptx.c
nccl_test_lib = bindings/nccl/libnccl.la $(CHECK_LIBS) -ldl -lpthread -lm
unit_tests += bindings/nccl/tests/test_nccl
bindings_nccl_tests_test_nccl_SOURCES = %D%/tests/test_nccl.c $(nccl_test_sources)
bindings_nccl_tests_test_nccl_CFLAGS = $(fake_cflags) -DNCCL_NO_CUDA_RUNTIME
bindings_nccl_tests_test_nccl_LDADD = $(nccl_test_lib)
EXTRA_bindings_nccl_tests_test_nccl_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += bindings/nccl/tests/test_nccl_ranks
bindings_nccl_tests_test_nccl_ranks_SOURCES = %D%/tests/test_nccl_ranks.c $(nccl_test_sources)
bindings_nccl_tests_test_nccl_ranks_CFLAGS = $(fake_cflags) -DNCCL_NO_CUDA_RUNTIME
bindings_nccl_tests_test_nccl_ranks_LDADD = $(nccl_test_lib)
EXTRA_bindings_nccl_tests_test_nccl_ranks_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += bindings/nccl/tests/test_nccl_wrong
bindings_nccl_tests_test_nccl_wrong_SOURCES = %D%/tests/test_nccl_wrong.c $(nccl_test_sources)
bindings_nccl_tests_test_nccl_wrong_CFLAGS = $(fake_cflags) -DNCCL_NO_CUDA_RUNTIME
bindings_nccl_tests_test_nccl_wrong_LDADD = $(nccl_test_lib)
EXTRA_bindings_nccl_tests_test_nccl_wrong_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif
endif
scripts += %D%/tests/nccl.sh
EXTRA_DIST += %D%/tests/abi.c %D%/tests/program.c
