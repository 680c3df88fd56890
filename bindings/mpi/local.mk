# SPDX-License-Identifier: BSD-3-Clause
# Libraries to preload into MPI programs, one for each MPI that configure found, and one for
# the ABI of MPI 5.  That one is not linked with an MPI: it takes the program's.
mpi_preload = %D%/call.c %D%/collectives.c %D%/comms.c %D%/map.c %D%/moves.c \
	%D%/persistent.c %D%/preload.h %D%/reductions.c %D%/report.c %D%/requests.c \
	%D%/requests.h %D%/types.c %D%/user_op.c %D%/waits.c
mpi_preload_cflags = $(AM_CFLAGS) -fvisibility=hidden
mpi_preload_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared
EXTRA_DIST += $(mpi_preload) %D%/tests/beside.c %D%/tests/beside.h %D%/tests/blocking.c \
	%D%/tests/cost.c %D%/tests/immediate.c %D%/tests/persistent.c
scripts += %D%/tests/mpi.sh %D%/tests/mpi4py.sh
# gcc takes the constants of MPICH's header for arrays that are too short
mpi_test_cflags = $(AM_CFLAGS) -Wno-unknown-warning-option -Wno-stringop-overflow
if HAVE_OPENMPI
pkglib_LTLIBRARIES += libcoll_mpi_ompi.la
libcoll_mpi_ompi_la_SOURCES = $(mpi_preload)
libcoll_mpi_ompi_la_CFLAGS = $(mpi_preload_cflags) $(OPENMPI_CFLAGS)
libcoll_mpi_ompi_la_LDFLAGS = $(mpi_preload_ldflags)
libcoll_mpi_ompi_la_LIBADD = libcoll.la $(OPENMPI_LIBS)
check_PROGRAMS += %D%/tests/blocking_ompi
%C%_tests_blocking_ompi_SOURCES = %D%/tests/blocking.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_blocking_ompi_CFLAGS = $(mpi_test_cflags) $(OPENMPI_CFLAGS)
%C%_tests_blocking_ompi_LDADD = $(OPENMPI_LIBS)
check_PROGRAMS += %D%/tests/immediate_ompi
%C%_tests_immediate_ompi_SOURCES = %D%/tests/immediate.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_immediate_ompi_CFLAGS = $(mpi_test_cflags) $(OPENMPI_CFLAGS)
%C%_tests_immediate_ompi_LDADD = $(OPENMPI_LIBS)
check_PROGRAMS += %D%/tests/persistent_ompi
%C%_tests_persistent_ompi_SOURCES = %D%/tests/persistent.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_persistent_ompi_CFLAGS = $(mpi_test_cflags) $(OPENMPI_CFLAGS)
%C%_tests_persistent_ompi_LDADD = $(OPENMPI_LIBS)
endif
if HAVE_MPICH
pkglib_LTLIBRARIES += libcoll_mpi_mpich.la
libcoll_mpi_mpich_la_SOURCES = $(mpi_preload)
libcoll_mpi_mpich_la_CFLAGS = $(mpi_preload_cflags) $(MPICH_CFLAGS)
libcoll_mpi_mpich_la_LDFLAGS = $(mpi_preload_ldflags)
libcoll_mpi_mpich_la_LIBADD = libcoll.la $(MPICH_LIBS)
check_PROGRAMS += %D%/tests/blocking_mpich
%C%_tests_blocking_mpich_SOURCES = %D%/tests/blocking.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_blocking_mpich_CFLAGS = $(mpi_test_cflags) $(MPICH_CFLAGS)
%C%_tests_blocking_mpich_LDADD = $(MPICH_LIBS)
check_PROGRAMS += %D%/tests/immediate_mpich
%C%_tests_immediate_mpich_SOURCES = %D%/tests/immediate.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_immediate_mpich_CFLAGS = $(mpi_test_cflags) $(MPICH_CFLAGS)
%C%_tests_immediate_mpich_LDADD = $(MPICH_LIBS)
check_PROGRAMS += %D%/tests/persistent_mpich
%C%_tests_persistent_mpich_SOURCES = %D%/tests/persistent.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_persistent_mpich_CFLAGS = $(mpi_test_cflags) $(MPICH_CFLAGS)
%C%_tests_persistent_mpich_LDADD = $(MPICH_LIBS)
endif
if HAVE_MPI_ABI
pkglib_LTLIBRARIES += libcoll_mpi_abi.la
libcoll_mpi_abi_la_SOURCES = $(mpi_preload)
libcoll_mpi_abi_la_CFLAGS = $(mpi_preload_cflags) $(MPI_ABI_CFLAGS)
libcoll_mpi_abi_la_LDFLAGS = $(mpi_preload_ldflags)
libcoll_mpi_abi_la_LIBADD = libcoll.la
check_PROGRAMS += %D%/tests/blocking_abi
%C%_tests_blocking_abi_SOURCES = %D%/tests/blocking.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_blocking_abi_CFLAGS = $(mpi_test_cflags) $(MPI_ABI_CFLAGS)
%C%_tests_blocking_abi_LDADD = $(MPI_ABI_LIBS)
check_PROGRAMS += %D%/tests/immediate_abi
%C%_tests_immediate_abi_SOURCES = %D%/tests/immediate.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_immediate_abi_CFLAGS = $(mpi_test_cflags) $(MPI_ABI_CFLAGS)
%C%_tests_immediate_abi_LDADD = $(MPI_ABI_LIBS)
check_PROGRAMS += %D%/tests/persistent_abi
%C%_tests_persistent_abi_SOURCES = %D%/tests/persistent.c %D%/tests/beside.c %D%/tests/beside.h
%C%_tests_persistent_abi_CFLAGS = $(mpi_test_cflags) $(MPI_ABI_CFLAGS)
%C%_tests_persistent_abi_LDADD = $(MPI_ABI_LIBS)
endif
