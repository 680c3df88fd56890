# SPDX-License-Identifier: BSD-3-Clause

# tests whose calls of libc come late at random, as on a busy machine:
# make check-jitter CHECK_JITTER="-s '4 5 6' tests/comm/test_fault"; see tests/jitter/run
if HAVE_CHECK
check_LTLIBRARIES += tests/jitter/libjitter.la
tests_jitter_libjitter_la_SOURCES = %D%/jitter.c
tests_jitter_libjitter_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_jitter_libjitter_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all
tests_jitter_libjitter_la_LIBADD = -ldl
EXTRA_DIST += %D%/run
CHECK_JITTER =
check-jitter:
	@$(MAKE) $(AM_MAKEFLAGS) -s check TESTS=
	@CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-10}; $(AM_TESTS_ENVIRONMENT) \
		srcdir=$(srcdir) $(srcdir)/%D%/run $(CHECK_JITTER)
endif
