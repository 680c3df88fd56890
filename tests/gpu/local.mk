# SPDX-License-Identifier: BSD-3-Clause

# what only a GPU can show: make check-gpu, where there is one; every check only tries
# the programs without
if HAVE_CUDA
gpu_common = %D%/gpu.c %D%/gpu.h %D%/gpu_ptx.c
check_PROGRAMS += tests/gpu/driver_rules tests/gpu/mechanisms
tests_gpu_driver_rules_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_driver_rules_LDADD = -ldl
tests_gpu_driver_rules_SOURCES = $(gpu_common) \
	%D%/driver_rules.c %D%/driver_rules.h \
	%D%/driver_rules_calls.c %D%/driver_rules_calls.h \
	%D%/driver_rules_capture.c %D%/driver_rules_context.c \
	%D%/driver_rules_copy.c %D%/driver_rules_fault.c \
	%D%/driver_rules_graph.c %D%/driver_rules_host.c \
	%D%/driver_rules_init.c %D%/driver_rules_ipc.c \
	%D%/driver_rules_ipc_more.c %D%/driver_rules_kernel.c \
	%D%/driver_rules_memop.c %D%/driver_rules_pointer.c \
	%D%/driver_rules_pool.c %D%/driver_rules_queue.c \
	%D%/driver_rules_report.c %D%/driver_rules_report.h \
	%D%/driver_rules_stream.c %D%/driver_rules_tools.c \
	%D%/driver_rules_unsafe.c %D%/driver_rules_vmm.c
tests_gpu_mechanisms_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_mechanisms_LDADD = -ldl
tests_gpu_mechanisms_SOURCES = $(gpu_common) \
	%D%/mechanisms.c %D%/mechanisms.h \
	%D%/mechanisms_copies.c %D%/mechanisms_costs.c \
	%D%/mechanisms_flags.c %D%/mechanisms_kernels.c \
	%D%/mechanisms_rank.c
check_PROGRAMS += tests/gpu/ranks
tests_gpu_ranks_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_ranks_LDADD = libworld.la libcore.la -ldl -lm
tests_gpu_ranks_SOURCES = $(gpu_common) %D%/ranks.c \
	%D%/ranks.h %D%/ranks_random.c \
	%D%/ranks_register.c $(fake_image)
gpu_programs = tests/gpu/driver_rules tests/gpu/mechanisms tests/gpu/ranks
if HAVE_NVCC
check_PROGRAMS += tests/gpu/kernels
gpu_programs += tests/gpu/kernels
tests_gpu_kernels_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_kernels_LDADD = libcore.la -ldl -lm
tests_gpu_kernels_SOURCES = $(gpu_common) \
	%D%/bench.c %D%/bench.h %D%/kernels.c \
	%D%/kernels_driver.c %D%/kernels_driver.h \
	tests/support/element.c tests/support/element.h tests/support/kernel_cases.c tests/support/kernel_cases.h
endif
bundle_libraries =
if HAVE_CHECK
if HAVE_CUDNN
bundle_libraries += tests/fake_cuda/libcuda.la tests/fake_cudnn/libcudnn.la \
	tests/fake_cudnn/libcublasLt.la
endif
endif
gpu_scripts = tests/stream/cuda.sh tests/stream/cuda_threads.sh %D%/gpu.sh tests/fake_cuda/fake_rules.sh \
	tests/transports/ucx_cuda.sh %D%/gpu_check.sh
TESTS += $(gpu_scripts)
# does the bundle for bare machines build, and does its trainer train, over the stand-ins of
# this build folder?
check-bundle: $(bundle_libraries)
	@dir=$$(mktemp -d) && $(srcdir)/%D%/bundle.sh $$dir/bundle.tar && \
	env -i PATH="$$PATH" $(srcdir)/%D%/library.sh $$dir/bundle.tar $$dir/library \
		> $$dir/log 2>&1 && $$dir/library/run $$dir/library/build/tests/gpu/ranks --list \
		> /dev/null && $(SHELL) $(srcdir)/%D%/bundle_train.sh $$dir/library tests \
		>> $$dir/log 2>&1 && echo "PASS: check-bundle"; status=$$?; \
	test $$status = 0 || tail $$dir/log; rm -rf $$dir; exit $$status
check-gpu: $(gpu_programs)
	@$(srcdir)/%D%/check.sh gpu-reports tests/gpu || test $$? = 77
else
check-gpu check-bundle:
	@echo "$@: skipped: configure found no cuda.h"
endif
dist_check_SCRIPTS += tests/stream/cuda.sh tests/stream/cuda_threads.sh %D%/gpu.sh tests/fake_cuda/fake_rules.sh \
	tests/transports/ucx_cuda.sh %D%/gpu_check.sh
EXTRA_DIST += %D%/README.md %D%/build.sh %D%/bundle.sh %D%/bundle_train.sh \
	%D%/check.sh %D%/library.sh %D%/train.sh \
	%D%/refusing_driver.c \
	%D%/reports/2026-11-22-h100-driver-580.159-check.json \
	%D%/reports/2026-11-22-h100-driver-580.159-kernels.json \
	%D%/reports/2026-11-22-h100-driver-580.159-kernels-2.json \
	%D%/reports/2026-11-22-h100-driver-580.159-mechanisms.json \
	%D%/reports/2026-11-22-h100-driver-580.159-rules.json \
	%D%/reports/2026-11-27-h200-driver-580.159-allreduce.json \
	%D%/reports/2026-11-27-h200-driver-580.159-check.json \
	%D%/reports/2026-11-27-h200-driver-580.159-kernels.json \
	%D%/reports/2026-11-27-h200-driver-580.159-mechanisms.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_hosts.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_kernel.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_mps.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_slots.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_slots_kernel.json \
	%D%/reports/2026-11-27-h200-driver-580.159-ranks_threads.json \
	%D%/reports/2026-11-27-h200-driver-580.159-rules.json
