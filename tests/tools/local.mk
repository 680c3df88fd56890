# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/tools/test_program
tests_tools_test_program_SOURCES = %D%/test_program.c
tests_tools_test_program_CFLAGS = $(check_cflags)
tests_tools_test_program_LDADD = libprogram.la $(CHECK_LIBS)
unit_tests += tests/tools/test_tune_judge
tests_tools_test_tune_judge_SOURCES = %D%/test_tune_judge.c tools/coll_tune_judge.c
tests_tools_test_tune_judge_CFLAGS = $(check_cflags)
tests_tools_test_tune_judge_LDADD = $(check_lib) -lm
endif
scripts += %D%/coll_info.sh %D%/coll_plan.sh %D%/coll_tune.sh %D%/valgrind.sh \
	%D%/quickstart.sh %D%/readme.sh %D%/manual.sh %D%/pkgconfig.sh
