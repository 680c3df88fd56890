# SPDX-License-Identifier: BSD-3-Clause

# RDMA between emulated machines: make check-rdma
if HAVE_CHECK
check_PROGRAMS += tests/rdma/ranks tests/rdma/tsc_khz
tests_rdma_ranks_SOURCES = %D%/ranks.c
tests_rdma_ranks_LDADD = libworld.la libcore.la
check-rdma: all tests/transports/conform tests/rdma/ranks tests/rdma/tsc_khz
	@srcdir=$(srcdir) $(srcdir)/%D%/run
else
check-rdma:
	@echo "$@: skipped: configure found no Check"
endif
EXTRA_DIST += %D%/guests %D%/job %D%/run \
	%D%/reports/last.txt
