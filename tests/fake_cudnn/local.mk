# SPDX-License-Identifier: BSD-3-Clause
# libcudnn.so.9 and libcublasLt.so.13 over tests/fake_cuda (README.md)
if HAVE_CHECK
if HAVE_CUDA
if HAVE_CUDNN
fake_dnn_cflags = $(AM_CFLAGS) $(CUDNN_CFLAGS)
fake_dnn_sources = %D%/gemm.c %D%/gemm.h \
	%D%/object.c %D%/object.h \
	%D%/runtime.c %D%/runtime.h tests/fake_cuda/foreign.h
check_LTLIBRARIES += tests/fake_cudnn/libcudnn.la
tests_fake_cudnn_libcudnn_la_SOURCES = %D%/dnn.h \
	%D%/conv.c %D%/conv_check.c %D%/conv_run.c \
	%D%/descriptor.c %D%/status.c \
	$(fake_dnn_sources)
tests_fake_cudnn_libcudnn_la_CFLAGS = $(fake_dnn_cflags)
tests_fake_cudnn_libcudnn_la_LIBADD = tests/fake_cuda/libcuda.la
tests_fake_cudnn_libcudnn_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(CUDNN_MAJOR):0:0 \
	-rpath /nowhere -Wl,--version-script=$(srcdir)/%D%/cudnn.map
EXTRA_tests_fake_cudnn_libcudnn_la_DEPENDENCIES = %D%/cudnn.map
check_LTLIBRARIES += tests/fake_cudnn/libcublasLt.la
tests_fake_cudnn_libcublasLt_la_SOURCES = %D%/lt.h \
	%D%/lt_check.c %D%/lt_descriptor.c %D%/lt_matmul.c %D%/lt_run.c \
	$(fake_dnn_sources)
tests_fake_cudnn_libcublasLt_la_CFLAGS = $(fake_dnn_cflags)
tests_fake_cudnn_libcublasLt_la_LIBADD = tests/fake_cuda/libcuda.la
tests_fake_cudnn_libcublasLt_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(CUBLAS_MAJOR):0:0 \
	-rpath /nowhere -Wl,--version-script=$(srcdir)/%D%/cublaslt.map
EXTRA_tests_fake_cudnn_libcublasLt_la_DEPENDENCIES = %D%/cublaslt.map
check_LTLIBRARIES += libfakednn.la
libfakednn_la_SOURCES = %D%/conv_fixture.c %D%/conv_fixture.h \
	%D%/dnn_fixture.c %D%/dnn_fixture.h
libfakednn_la_CFLAGS = $(fake_cflags) $(CUDNN_CFLAGS) \
	-DFAKE_CUDNN='"$(abs_builddir)/%D%/.libs/libcudnn.so.$(CUDNN_MAJOR)"' \
	-DFAKE_CUBLASLT='"$(abs_builddir)/%D%/.libs/libcublasLt.so.$(CUBLAS_MAJOR)"'
fake_dnn_libs = tests/fake_cudnn/libcudnn.la tests/fake_cudnn/libcublasLt.la
unit_tests += tests/fake_cudnn/test_fake_cublaslt tests/fake_cudnn/test_fake_cudnn \
	tests/fake_cudnn/test_fake_cudnn_rules tests/fake_cudnn/test_fake_cublaslt_rules
tests_fake_cudnn_test_fake_cublaslt_rules_CFLAGS = $(fake_cflags) $(CUDNN_CFLAGS)
tests_fake_cudnn_test_fake_cublaslt_rules_LDADD = libfakednn.la $(fake_lib) -lm
EXTRA_tests_fake_cudnn_test_fake_cublaslt_rules_DEPENDENCIES = $(fake_dnn_libs)
tests_fake_cudnn_test_fake_cudnn_rules_CFLAGS = $(fake_cflags) $(CUDNN_CFLAGS)
tests_fake_cudnn_test_fake_cudnn_rules_LDADD = libfakednn.la $(fake_lib) -lm
EXTRA_tests_fake_cudnn_test_fake_cudnn_rules_DEPENDENCIES = $(fake_dnn_libs)
tests_fake_cudnn_test_fake_cublaslt_CFLAGS = $(fake_cflags) $(CUDNN_CFLAGS)
tests_fake_cudnn_test_fake_cublaslt_LDADD = libfakednn.la $(fake_lib) -lm
EXTRA_tests_fake_cudnn_test_fake_cublaslt_DEPENDENCIES = $(fake_dnn_libs)
tests_fake_cudnn_test_fake_cudnn_CFLAGS = $(fake_cflags) $(CUDNN_CFLAGS)
tests_fake_cudnn_test_fake_cudnn_LDADD = libfakednn.la $(fake_lib) -lm
EXTRA_tests_fake_cudnn_test_fake_cudnn_DEPENDENCIES = $(fake_dnn_libs)
endif
endif
endif
EXTRA_DIST += %D%/README.md %D%/cudnn.map %D%/cublaslt.map
