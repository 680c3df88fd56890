# Unit tests in Check link libcore.la, so that they see the internals.
if HAVE_CHECK

# plans, passes, selection
check_PROGRAMS += tests/test_plan
tests_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_plan_LDADD = libcore.la $(CHECK_LIBS)

# reduction kernels
check_PROGRAMS += tests/test_reduce
tests_test_reduce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_reduce_LDADD = libcore.la $(CHECK_LIBS)

# topology
check_PROGRAMS += tests/test_topo
tests_test_topo_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_topo_LDADD = libcore.la $(CHECK_LIBS)

endif
EXTRA_DIST += %D%/topo/two_sockets.xml %D%/topo/two_sockets.txt \
	%D%/topo/four_numa.xml %D%/topo/four_numa.txt
TESTS += $(check_PROGRAMS)
