# SPDX-License-Identifier: BSD-3-Clause

# random faults among ranks: make check-faults, and some of them in every check
if HAVE_CHECK
check_PROGRAMS += tests/faults/check_faults
tests_faults_check_faults_SOURCES = %D%/faults.c %D%/faults.h %D%/faults_case.c \
	%D%/faults_judge.c %D%/faults_malloc.c %D%/faults_script.c \
	tests/support/seclude.c tests/support/seclude.h
tests_faults_check_faults_LDADD = libcrash.la libworld.la libcore.la -lm
noinst_LTLIBRARIES += libcrash.la
libcrash_la_SOURCES = %D%/faults_crash.c
libcrash_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all

# CHECK_FAULTS="--seed 2 --cases 5000" for others; see tests/faults/check_faults --help
CHECK_FAULTS =
CLEANFILES += faults.out faults.err
check-faults: tests/faults/check_faults
	@tests/faults/check_faults $(CHECK_FAULTS) > faults.out 2> faults.err; \
	status=$$?; cat faults.out; exit $$status
endif
scripts += %D%/faults.sh
EXTRA_DIST += %D%/faults.txt
