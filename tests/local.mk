# SPDX-License-Identifier: BSD-3-Clause
# Unit tests in Check link libcore.la and libstudy.la, so that they see the internals;
# scripts try the programs from the outside.  Whatever a machine cannot run exits with
# 77 and the reason.

# The environment of every test.  Limits of time are multiplied (tests/support/patience.h).
# With its hooks into mmap UCX does not run under the thread sanitizer; hwloc's pci
# plugin leaks what libpciaccess gave it; each caller that the address sanitizer notes costs
# each malloc.
AM_TESTS_ENVIRONMENT = \
	CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-$(COLL_PATIENCE)}; \
	export CK_TIMEOUT_MULTIPLIER; \
	UCX_MEM_MMAP_HOOK_MODE=none; export UCX_MEM_MMAP_HOOK_MODE; \
	HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS; \
	TSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/support/tsan.supp:atexit_sleep_ms=0; \
	export TSAN_OPTIONS; \
	LSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/support/lsan.supp:print_suppressions=0; \
	export LSAN_OPTIONS; \
	ASAN_OPTIONS=malloc_context_size=8; export ASAN_OPTIONS; \
	CC="$(CC)"; CXX="$(CXX)"; export CC CXX; \
	MPI_ABI_MPIEXEC=$(MPI_ABI_MPIEXEC); export MPI_ABI_MPIEXEC; \
	TEST_LDFLAGS="$(COLL_LDFLAGS)"; export TEST_LDFLAGS;

# each says how long it took
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/support/timed
TEST_LOG_COMPILER = $(LOG_COMPILER)

check_lib = libside.la libstudy.la libcore.la $(CHECK_LIBS)
check_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -include tests/support/mark.h

# what the folders add to: test programs by Check; scripts; scripts that take minutes each
unit_tests =
scripts =
long_scripts =

include %D%/algo/local.mk
include %D%/api/local.mk
include %D%/bench/local.mk
include %D%/boot/local.mk
include %D%/comm/local.mk
include %D%/ctrl/local.mk
include %D%/device/local.mk
include %D%/exec/local.mk
include %D%/fake_cuda/local.mk
include %D%/fake_cudnn/local.mk
include %D%/faults/local.mk
include %D%/gpu/local.mk
include %D%/jitter/local.mk
include %D%/launch/local.mk
include %D%/net/local.mk
include %D%/order/local.mk
include %D%/plan/local.mk
include %D%/price/local.mk
include %D%/proof/local.mk
include %D%/rdma/local.mk
include %D%/run/local.mk
include %D%/sim/local.mk
include %D%/stream/local.mk
include %D%/style/local.mk
include %D%/support/local.mk
include %D%/tags/local.mk
include %D%/tools/local.mk
include %D%/topo/local.mk
include %D%/trace/local.mk
include %D%/trainer/local.mk
include %D%/transports/local.mk

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
dist_check_SCRIPTS += $(scripts) $(long_scripts)
TESTS += $(scripts)
EXTRA_DIST += %D%/README %D%/kinds %D%/run_all

clean-local:
	rm -rf gpu-reports jitter

# for run_all, which runs some side by side
.PHONY: list-tests list-programs check-bundle check-faults check-gpu check-jitter check-long
.PHONY: check-rdma
list-tests:
	@echo $(TESTS)
list-programs:
	@echo $(check_PROGRAMS)

# The whole suite with what `make check` shortens, and what takes minutes alone.
check-long:
	TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(long_scripts)"
	$(MAKE) $(AM_MAKEFLAGS) check-faults
	$(MAKE) $(AM_MAKEFLAGS) check-jitter
	$(MAKE) $(AM_MAKEFLAGS) check-bundle
