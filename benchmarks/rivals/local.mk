# benchmarks/compare: a driver, and one program a library, which is the same
# loop over another backend.  What is missing is said when compare runs.
noinst_LTLIBRARIES += libcompare.la
libcompare_la_SOURCES = %D%/args.c %D%/cell.c %D%/compare.h %D%/forms.c \
	%D%/hosts.c %D%/job.c %D%/json.c %D%/kernels.c %D%/limits.c %D%/limits_gpu.c \
	%D%/machine.c \
	%D%/model.c %D%/peer.h %D%/peer_barrier.c %D%/plot.c %D%/text.c \
	tools/common/cores.h tools/common/gnuplot.h
libcompare_la_CPPFLAGS = $(AM_CPPFLAGS) -DCOLL_LIBEXEC='"$(pkglibexecdir)"'
libcompare_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libcompare_la_LIBADD = libbenchdevice.la libprogram.la libtable.la
compare_libs = libcompare.la $(JANSSON_LIBS) -lm

# compare is a name that others have, too: it is installed as coll_compare
noinst_PROGRAMS += benchmarks/compare
benchmarks_compare_SOURCES = %D%/compare.c
benchmarks_compare_LDADD = $(compare_libs)
bin_PROGRAMS += benchmarks/coll_compare
benchmarks_coll_compare_SOURCES = %D%/compare.c
benchmarks_coll_compare_LDADD = $(compare_libs)

noinst_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = %D%/peer.h %D%/peer_barrier.c %D%/peer_data.c %D%/peer_loop.c
libpeer_la_LIBADD = libbenchdevice.la

pkglibexec_PROGRAMS = benchmarks/compare_coll
benchmarks_compare_coll_SOURCES = %D%/peer_coll.c
benchmarks_compare_coll_LDADD = libpeer.la libcoll.la
pkglibexec_PROGRAMS += benchmarks/compare_sockets
benchmarks_compare_sockets_SOURCES = %D%/peer_sockets.c
benchmarks_compare_sockets_LDADD = libpeer.la
dist_pkglibexec_SCRIPTS = tests/net/hosts tests/net/rsh
if HAVE_OPENMPI
pkglibexec_PROGRAMS += benchmarks/compare_openmpi
benchmarks_compare_openmpi_SOURCES = %D%/peer_mpi.c
benchmarks_compare_openmpi_CFLAGS = $(AM_CFLAGS) $(OPENMPI_CFLAGS)
benchmarks_compare_openmpi_LDADD = libpeer.la $(OPENMPI_LIBS)
endif
if HAVE_MPICH
pkglibexec_PROGRAMS += benchmarks/compare_mpich
benchmarks_compare_mpich_SOURCES = %D%/peer_mpi.c
benchmarks_compare_mpich_CFLAGS = $(AM_CFLAGS) $(MPICH_CFLAGS)
benchmarks_compare_mpich_LDADD = libpeer.la $(MPICH_LIBS)
endif
if HAVE_GLOO
pkglibexec_PROGRAMS += benchmarks/compare_gloo
benchmarks_compare_gloo_SOURCES = %D%/peer_gloo.cc
benchmarks_compare_gloo_CXXFLAGS = $(AM_CXXFLAGS) $(GLOO_CFLAGS)
benchmarks_compare_gloo_LDADD = libpeer.la $(GLOO_LIBS)
endif
if HAVE_NCCL
pkglibexec_PROGRAMS += benchmarks/compare_nccl
benchmarks_compare_nccl_SOURCES = %D%/peer_nccl.c
benchmarks_compare_nccl_CFLAGS = $(AM_CFLAGS) $(NCCL_CFLAGS)
benchmarks_compare_nccl_LDADD = libpeer.la
endif
