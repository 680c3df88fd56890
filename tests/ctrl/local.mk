# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/ctrl/test_agree
tests_ctrl_test_agree_SOURCES = %D%/test_agree.c
tests_ctrl_test_agree_CFLAGS = $(check_cflags)
tests_ctrl_test_agree_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_ctrl
tests_ctrl_test_ctrl_SOURCES = %D%/test_ctrl.c $(boot_world)
tests_ctrl_test_ctrl_CFLAGS = $(check_cflags)
tests_ctrl_test_ctrl_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_ctrl_agree
tests_ctrl_test_ctrl_agree_SOURCES = %D%/test_ctrl_agree.c $(boot_world)
tests_ctrl_test_ctrl_agree_CFLAGS = $(check_cflags)
tests_ctrl_test_ctrl_agree_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_ctrl_ask
tests_ctrl_test_ctrl_ask_SOURCES = %D%/test_ctrl_ask.c $(boot_world)
tests_ctrl_test_ctrl_ask_CFLAGS = $(check_cflags)
tests_ctrl_test_ctrl_ask_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_death
tests_ctrl_test_death_SOURCES = %D%/test_death.c $(boot_world)
tests_ctrl_test_death_CFLAGS = $(check_cflags)
tests_ctrl_test_death_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_round
tests_ctrl_test_round_CFLAGS = $(check_cflags)
tests_ctrl_test_round_LDADD = $(check_lib)
tests_ctrl_test_round_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=coll__link_send \
	-Wl,--wrap=clock_gettime -Wl,--wrap=coll__reactor_defer_until \
	-Wl,--wrap=coll__reactor_cancel
endif
