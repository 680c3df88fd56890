# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/tags/test_match
tests_tags_test_match_CFLAGS = $(check_cflags)
tests_tags_test_match_LDADD = libworld.la $(check_lib)
unit_tests += tests/tags/test_tags
tests_tags_test_tags_SOURCES = %D%/test_tags.c %D%/tags.h
tests_tags_test_tags_CFLAGS = $(check_cflags)
tests_tags_test_tags_LDADD = libworld.la $(check_lib)
unit_tests += tests/tags/test_tags_wrong
tests_tags_test_tags_wrong_SOURCES = %D%/test_tags_wrong.c %D%/tags.h
tests_tags_test_tags_wrong_CFLAGS = $(check_cflags)
tests_tags_test_tags_wrong_LDADD = libworld.la $(check_lib)
unit_tests += tests/tags/test_tags_random
tests_tags_test_tags_random_SOURCES = %D%/test_tags_random.c %D%/tags.h
tests_tags_test_tags_random_CFLAGS = $(check_cflags)
tests_tags_test_tags_random_LDADD = libworld.la $(check_lib)
endif
