# Unit tests in Check link libcore.la, so that they see the internals.

# reduction kernels
if HAVE_CHECK
check_PROGRAMS += tests/test_reduce
tests_test_reduce_SOURCES = %D%/test_reduce.c
tests_test_reduce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_reduce_LDADD = libcore.la $(CHECK_LIBS)
TESTS += tests/test_reduce
endif

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
