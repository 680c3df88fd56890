# Unit tests in Check link libcore.la, so that they see the internals.

if HAVE_CHECK
# transports, all of them
check_PROGRAMS += tests/conform
TESTS += tests/conform
tests_conform_SOURCES = %D%/conform.c %D%/conform.h %D%/conform_world.c
tests_conform_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_conform_LDADD = libcore.la $(CHECK_LIBS)

# what arrives over UCX
check_PROGRAMS += tests/test_ucx
TESTS += tests/test_ucx
tests_test_ucx_CFLAGS = $(AM_CFLAGS) $(UCX_CFLAGS) $(CHECK_CFLAGS)
tests_test_ucx_LDADD = libcore.la $(CHECK_LIBS)
endif

if HAVE_CHECK

# plans, passes, selection
check_PROGRAMS += tests/test_plan
tests_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_plan_LDADD = libcore.la $(CHECK_LIBS)
TESTS += tests/test_plan

# reduction kernels
check_PROGRAMS += tests/test_reduce
tests_test_reduce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_reduce_LDADD = libcore.la $(CHECK_LIBS)
TESTS += tests/test_reduce

# the public operations among processes and threads
noinst_LTLIBRARIES += libworld.la
libworld_la_SOURCES = %D%/world.c %D%/world.h %D%/oracle.c %D%/oracle.h
check_PROGRAMS += tests/test_coll tests/test_fault tests/test_hot
tests_test_coll_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_coll_LDADD = libworld.la libcore.la $(CHECK_LIBS)
tests_test_fault_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_fault_LDADD = libworld.la libcore.la $(CHECK_LIBS)
tests_test_hot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_hot_LDADD = libworld.la libcore.la $(CHECK_LIBS)
TESTS += tests/test_coll tests/test_fault tests/test_hot

endif

# under real launchers
dist_check_SCRIPTS += %D%/mpirun.sh %D%/slurm.sh
EXTRA_DIST += %D%/launch.sh %D%/net/slurm-up %D%/run_all %D%/summary

TESTS += %D%/mpirun.sh %D%/slurm.sh

# topology
if HAVE_CHECK
check_PROGRAMS += tests/test_topo
tests_test_topo_SOURCES = %D%/test_topo.c
tests_test_topo_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_topo_LDADD = libcore.la $(CHECK_LIBS)
TESTS += tests/test_topo
endif
EXTRA_DIST += %D%/topo/two_sockets.xml %D%/topo/two_sockets.txt \
	%D%/topo/four_numa.xml %D%/topo/four_numa.txt
