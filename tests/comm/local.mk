# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/comm/test_diagnose
tests_comm_test_diagnose_CFLAGS = $(check_cflags)
tests_comm_test_diagnose_LDADD = $(check_lib)
unit_tests += tests/comm/test_measure
tests_comm_test_measure_CFLAGS = $(check_cflags)
tests_comm_test_measure_LDADD = $(check_lib) -lm
tests_comm_test_measure_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
unit_tests += tests/comm/test_mismatch
tests_comm_test_mismatch_CFLAGS = $(check_cflags)
tests_comm_test_mismatch_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_fault
tests_comm_test_fault_SOURCES = %D%/test_fault.c tests/support/seclude.c tests/support/seclude.h
tests_comm_test_fault_CFLAGS = $(check_cflags)
tests_comm_test_fault_LDADD = libworld.la $(check_lib)
fork_child = %D%/fork_child.c %D%/fork_child.h
unit_tests += tests/comm/test_fork
tests_comm_test_fork_SOURCES = %D%/test_fork.c $(fork_child)
tests_comm_test_fork_CFLAGS = $(check_cflags)
tests_comm_test_fork_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_fork_own
tests_comm_test_fork_own_SOURCES = %D%/test_fork_own.c $(fork_child)
tests_comm_test_fork_own_CFLAGS = $(check_cflags)
tests_comm_test_fork_own_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_uneven
tests_comm_test_uneven_CFLAGS = $(check_cflags)
tests_comm_test_uneven_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_ask
tests_comm_test_ask_CFLAGS = $(check_cflags)
tests_comm_test_ask_LDADD = libworld.la $(check_lib)
tests_comm_test_ask_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=nanosleep \
	-Wl,--wrap=sched_yield -Wl,--wrap=coll__lock_wait \
	-Wl,--wrap=coll__reactor_lock -Wl,--wrap=coll__reactor_poll
unit_tests += tests/comm/test_stall
tests_comm_test_stall_CFLAGS = $(check_cflags)
tests_comm_test_stall_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_grow
tests_comm_test_grow_SOURCES = %D%/test_grow.c %D%/scene.h
tests_comm_test_grow_CFLAGS = $(check_cflags)
tests_comm_test_grow_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_shrink
tests_comm_test_shrink_SOURCES = %D%/test_shrink.c %D%/scene.h
tests_comm_test_shrink_CFLAGS = $(check_cflags)
tests_comm_test_shrink_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_survive
tests_comm_test_survive_CFLAGS = $(check_cflags)
tests_comm_test_survive_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_leave
tests_comm_test_leave_CFLAGS = $(check_cflags)
tests_comm_test_leave_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_split
tests_comm_test_split_CFLAGS = $(check_cflags)
tests_comm_test_split_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_many
tests_comm_test_many_CFLAGS = $(check_cflags)
tests_comm_test_many_LDADD = libworld.la $(check_lib)
endif
