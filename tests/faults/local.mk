# SPDX-License-Identifier: BSD-3-Clause

# random faults among ranks: make check-faults, and some of them in every check
if HAVE_CHECK
many = %D%/many.c %D%/many.h %D%/crash.h %D%/crash_malloc.c tests/support/seclude.c \
	tests/support/seclude.h
many_lib = libcrash.la libworld.la libcore.la -lm
check_PROGRAMS += tests/faults/check_faults
tests_faults_check_faults_SOURCES = %D%/faults.c %D%/faults.h %D%/faults_case.c \
	%D%/faults_judge.c %D%/faults_script.c $(many)
tests_faults_check_faults_LDADD = $(many_lib)
check_PROGRAMS += tests/faults/check_survivors
tests_faults_check_survivors_SOURCES = %D%/survivors.c %D%/survivors.h %D%/survivors_case.c \
	%D%/survivors_rank.c %D%/survivors_steps.c $(many)
tests_faults_check_survivors_LDADD = $(many_lib)
if HAVE_CUDA
tests_faults_check_survivors_SOURCES += %D%/survivors_gpu.c tests/gpu/gpu.c tests/gpu/gpu.h tests/gpu/gpu_ptx.c \
	$(fake_image)
tests_faults_check_survivors_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS) \
	-DFAKE_CUDA='"$(abs_builddir)/tests/fake_cuda/.libs/libcuda.so.1"'
tests_faults_check_survivors_LDADD += -ldl
EXTRA_tests_faults_check_survivors_DEPENDENCIES = tests/fake_cuda/libcuda.la
else
tests_faults_check_survivors_SOURCES += %D%/survivors_no_gpu.c
endif
noinst_LTLIBRARIES += libcrash.la
libcrash_la_SOURCES = %D%/crash.c
libcrash_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all

# CHECK_FAULTS="--seed 2 --cases 5000" for others; see tests/faults/check_faults --help
CHECK_FAULTS =
CLEANFILES += faults.out faults.err survivors.out survivors.err
check-faults: tests/faults/check_faults tests/faults/check_survivors
	@tests/faults/check_faults $(CHECK_FAULTS) > faults.out 2> faults.err; \
	status=$$?; cat faults.out; \
	tests/faults/check_survivors $(CHECK_FAULTS) > survivors.out 2> survivors.err || \
	status=$$?; cat survivors.out; exit $$status
endif
scripts += %D%/faults.sh %D%/survivors.sh
EXTRA_DIST += %D%/faults.txt %D%/survivors.txt
