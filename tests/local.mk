# Unit tests in Check link libcore.la and libstudy.la, so that they see the internals;
# scripts try the programs from the outside.  Whatever a machine cannot run exits with
# 77 and the reason.

# The environment of every test.  Limits of time are multiplied (tests/support/patience.h).
# With its hooks into mmap UCX does not run under the thread sanitizer; hwloc's pci
# plugin leaks what libpciaccess gave it; the leak sanitizer needs whole stacks to
# know a leak of another library.
AM_TESTS_ENVIRONMENT = \
	CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-$(COLL_PATIENCE)}; \
	export CK_TIMEOUT_MULTIPLIER; \
	UCX_MEM_MMAP_HOOK_MODE=none; export UCX_MEM_MMAP_HOOK_MODE; \
	HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS; \
	TSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/support/tsan.supp:atexit_sleep_ms=0; \
	export TSAN_OPTIONS; \
	LSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/support/lsan.supp:print_suppressions=0; \
	export LSAN_OPTIONS; \
	ASAN_OPTIONS=fast_unwind_on_malloc=0; export ASAN_OPTIONS; \
	CC="$(CC)"; CXX="$(CXX)"; export CC CXX; \
	TEST_LDFLAGS="$(COLL_LDFLAGS)"; export TEST_LDFLAGS;

# each says how long it took
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/support/timed
TEST_LOG_COMPILER = $(LOG_COMPILER)

check_lib = libstudy.la libcore.la $(CHECK_LIBS)
check_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -include tests/support/mark.h

if HAVE_CHECK
unit_tests =

# plans, kernels, topology
unit_tests += tests/plan/test_load
tests_plan_test_load_CFLAGS = $(check_cflags)
tests_plan_test_load_LDADD = $(check_lib)
unit_tests += tests/plan/test_page
tests_plan_test_page_CFLAGS = $(check_cflags)
tests_plan_test_page_LDADD = $(check_lib)
unit_tests += tests/plan/test_plan
tests_plan_test_plan_CFLAGS = $(check_cflags)
tests_plan_test_plan_LDADD = $(check_lib)
unit_tests += tests/algo/test_algo
tests_algo_test_algo_CFLAGS = $(check_cflags)
tests_algo_test_algo_LDADD = $(check_lib)
unit_tests += tests/plan/test_edges
tests_plan_test_edges_CFLAGS = $(check_cflags)
tests_plan_test_edges_LDADD = $(check_lib)
unit_tests += tests/proof/test_slots
tests_proof_test_slots_CFLAGS = $(check_cflags)
tests_proof_test_slots_LDADD = $(check_lib)
unit_tests += tests/proof/test_turns
tests_proof_test_turns_CFLAGS = $(check_cflags)
tests_proof_test_turns_LDADD = $(check_lib)
unit_tests += tests/plan/test_mutation
tests_plan_test_mutation_CFLAGS = $(check_cflags)
tests_plan_test_mutation_LDADD = $(check_lib)
unit_tests += tests/plan/test_flow
tests_plan_test_flow_CFLAGS = $(check_cflags)
tests_plan_test_flow_LDADD = $(check_lib)
unit_tests += tests/plan/test_forward
tests_plan_test_forward_CFLAGS = $(check_cflags)
tests_plan_test_forward_LDADD = $(check_lib)
unit_tests += tests/price/test_tune
tests_price_test_tune_CFLAGS = $(check_cflags)
tests_price_test_tune_LDADD = $(check_lib)
sim_fixture = %D%/sim/sim_fixture.c %D%/sim/sim_fixture.h
unit_tests += tests/sim/test_sim
tests_sim_test_sim_SOURCES = %D%/sim/test_sim.c $(sim_fixture)
tests_sim_test_sim_CFLAGS = $(check_cflags)
tests_sim_test_sim_LDADD = $(check_lib) -lm
unit_tests += tests/price/test_choice
tests_price_test_choice_SOURCES = %D%/price/test_choice.c $(sim_fixture)
tests_price_test_choice_CFLAGS = $(check_cflags)
tests_price_test_choice_LDADD = $(check_lib) -lm
unit_tests += tests/tools/test_program
tests_tools_test_program_SOURCES = %D%/tools/test_program.c
tests_tools_test_program_CFLAGS = $(check_cflags)
tests_tools_test_program_LDADD = libprogram.la $(CHECK_LIBS)
unit_tests += tests/tools/test_tune_judge
tests_tools_test_tune_judge_SOURCES = %D%/tools/test_tune_judge.c tools/coll_tune_judge.c
tests_tools_test_tune_judge_CFLAGS = $(check_cflags)
tests_tools_test_tune_judge_LDADD = $(check_lib) -lm
unit_tests += tests/device/test_copy
tests_device_test_copy_CFLAGS = $(check_cflags)
tests_device_test_copy_LDADD = $(check_lib)
unit_tests += tests/device/test_number
tests_device_test_number_SOURCES = %D%/device/test_number.c %D%/support/element.c %D%/support/element.h
tests_device_test_number_CFLAGS = $(check_cflags)
tests_device_test_number_LDADD = $(check_lib) -lm
kernel_cases = %D%/support/kernel_cases.c %D%/support/kernel_cases.h %D%/support/element.c \
	%D%/support/element.h lib/device/cuda_table.c
unit_tests += tests/device/test_reduce
tests_device_test_reduce_SOURCES = %D%/device/test_reduce.c $(kernel_cases)
tests_device_test_reduce_CFLAGS = $(check_cflags)
tests_device_test_reduce_LDADD = $(check_lib) -lm

# the kernels for device memory: on the host by tests/fake_cuda
# (a library: with sanitizers they take minutes to compile; cxx.cc and cxx_pic.cc, which are
# not there, have automake link by the C++ compiler)
check_LTLIBRARIES += tests/fake_cuda/libkernels.la
tests_fake_cuda_libkernels_la_SOURCES = benchmarks/bench_kernel.cu \
	%D%/fake_cuda/kernels.cc %D%/fake_cuda/kernels.h \
	%D%/fake_cuda/cuda_shim.h %D%/fake_cuda/grid.c %D%/fake_cuda/grid.h
tests_fake_cuda_libkernels_la_CXXFLAGS = $(AM_CXXFLAGS) -Wno-unknown-pragmas
unit_tests += tests/device/test_cuda_kernels
tests_device_test_cuda_kernels_SOURCES = %D%/device/test_cuda_kernels.c $(kernel_cases)
nodist_EXTRA_tests_device_test_cuda_kernels_SOURCES = cxx.cc
tests_device_test_cuda_kernels_CFLAGS = $(check_cflags)
tests_device_test_cuda_kernels_LDADD = tests/fake_cuda/libkernels.la $(check_lib) -lm
unit_tests += tests/device/test_cuda_plan
tests_device_test_cuda_plan_SOURCES = %D%/device/test_cuda_plan.c $(kernel_cases)
nodist_EXTRA_tests_device_test_cuda_plan_SOURCES = cxx.cc
tests_device_test_cuda_plan_CFLAGS = $(check_cflags)
tests_device_test_cuda_plan_LDADD = tests/fake_cuda/libkernels.la $(check_lib) -lm
if HAVE_CUDA
unit_tests += tests/device/test_cuda_driver
tests_device_test_cuda_driver_CFLAGS = $(check_cflags) $(CUDA_CFLAGS) \
	-DFEW='"$(abs_builddir)/%D%/fake_cuda/few/.libs/libcuda.so.1"'
tests_device_test_cuda_driver_LDADD = $(check_lib)
EXTRA_tests_device_test_cuda_driver_DEPENDENCIES = tests/fake_cuda/few/libcuda.la
# libcuda.so.1: a driver of few entries
check_LTLIBRARIES += tests/fake_cuda/few/libcuda.la
tests_fake_cuda_few_libcuda_la_SOURCES = %D%/fake_cuda/few.c
tests_fake_cuda_few_libcuda_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_fake_cuda_few_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere

# what stands for the kernels where there is no nvcc
if !HAVE_NVCC
fake_image = %D%/fake_cuda/image.c
endif
# libcuda.so.1: a driver without a device (tests/fake_cuda/README.md)
check_LTLIBRARIES += tests/fake_cuda/libcuda.la
tests_fake_cuda_libcuda_la_SOURCES = %D%/fake_cuda/fake.h \
	%D%/fake_cuda/block.c %D%/fake_cuda/call.c %D%/fake_cuda/capture.c \
	%D%/fake_cuda/context.c %D%/fake_cuda/copy.c %D%/fake_cuda/counts.c \
	%D%/fake_cuda/counts.h %D%/fake_cuda/device.c %D%/fake_cuda/door.c \
	%D%/fake_cuda/entries.c %D%/fake_cuda/errors.c %D%/fake_cuda/event.c \
	%D%/fake_cuda/fault.c %D%/fake_cuda/graph.c %D%/fake_cuda/held.c \
	%D%/fake_cuda/host.c %D%/fake_cuda/ipc.c %D%/fake_cuda/memop.c \
	%D%/fake_cuda/memory.c %D%/fake_cuda/module.c %D%/fake_cuda/object.c \
	%D%/fake_cuda/pointer.c %D%/fake_cuda/pool.c %D%/fake_cuda/ptx.c \
	%D%/fake_cuda/queue.c %D%/fake_cuda/stream.c %D%/fake_cuda/vmm.c \
	%D%/fake_cuda/work.c
nodist_EXTRA_tests_fake_cuda_libcuda_la_SOURCES = cxx_pic.cc
tests_fake_cuda_libcuda_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_fake_cuda_libcuda_la_LIBADD = tests/fake_cuda/libkernels.la
tests_fake_cuda_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere -Wl,--version-script=$(srcdir)/%D%/fake_cuda/exports.map
EXTRA_tests_fake_cuda_libcuda_la_DEPENDENCIES = %D%/fake_cuda/exports.map
EXTRA_DIST += %D%/fake_cuda/exports.map
# libnvidia-ml.so.1, which a UCX with CUDA is linked to
check_LTLIBRARIES += tests/fake_cuda/libnvidia-ml.la
tests_fake_cuda_libnvidia_ml_la_SOURCES = %D%/fake_cuda/nvml.c
tests_fake_cuda_libnvidia_ml_la_CFLAGS = $(AM_CFLAGS)
tests_fake_cuda_libnvidia_ml_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 \
	-rpath /nowhere
fake_cflags = $(check_cflags) $(CUDA_CFLAGS) \
	-DFAKE_CUDA='"$(abs_builddir)/%D%/fake_cuda/.libs/libcuda.so.1"'
check_LTLIBRARIES += libfake.la
libfake_la_SOURCES = %D%/fake_cuda/fake_fixture.c %D%/fake_cuda/fake_fixture.h %D%/gpu/gpu.c \
	%D%/gpu/gpu.h %D%/gpu/gpu_ptx.c %D%/support/staged_world.c %D%/support/staged_world.h
libfake_la_CFLAGS = $(fake_cflags)
fake_lib = libfake.la libworld.la $(check_lib) -ldl
unit_tests += tests/fake_cuda/test_fake_cuda tests/fake_cuda/test_fake_graph tests/fake_cuda/test_fake_ipc \
	tests/fake_cuda/test_fake_order
tests_fake_cuda_test_fake_cuda_SOURCES = %D%/fake_cuda/test_fake_cuda.c %D%/gpu/kernels_driver.c %D%/gpu/kernels_driver.h
tests_fake_cuda_test_fake_cuda_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_cuda_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_cuda_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/device/test_cuda_device
tests_device_test_cuda_device_SOURCES = %D%/device/test_cuda_device.c %D%/support/element.c %D%/support/element.h
tests_device_test_cuda_device_CFLAGS = $(fake_cflags)
tests_device_test_cuda_device_LDADD = $(fake_lib) -lm
EXTRA_tests_device_test_cuda_device_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_levels
tests_stream_test_levels_SOURCES = %D%/stream/test_levels.c $(fake_image)
tests_stream_test_levels_CFLAGS = $(fake_cflags)
tests_stream_test_levels_LDADD = $(fake_lib)
EXTRA_tests_stream_test_levels_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_captured
tests_stream_test_cuda_captured_SOURCES = %D%/stream/test_cuda_captured.c $(fake_image)
tests_stream_test_cuda_captured_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_captured_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_captured_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_staged
tests_stream_test_cuda_staged_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_staged_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_staged_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cut
tests_stream_test_cut_CFLAGS = $(check_cflags)
tests_stream_test_cut_LDADD = $(check_lib)
unit_tests += tests/stream/test_cuda_wrong
tests_stream_test_cuda_wrong_SOURCES = %D%/stream/test_cuda_wrong.c $(fake_image)
tests_stream_test_cuda_wrong_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_wrong_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_wrong_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_kernel
tests_stream_test_cuda_kernel_SOURCES = %D%/stream/test_cuda_kernel.c $(fake_image)
tests_stream_test_cuda_kernel_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_kernel_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_kernel_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_check
tests_stream_test_cuda_check_SOURCES = %D%/stream/test_cuda_check.c $(fake_image)
tests_stream_test_cuda_check_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_check_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_check_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_check_messages
tests_stream_test_cuda_check_messages_SOURCES = %D%/stream/test_cuda_check_messages.c $(fake_image)
tests_stream_test_cuda_check_messages_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_check_messages_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_check_messages_DEPENDENCIES = tests/fake_cuda/libcuda.la
registered = %D%/stream/registered.c %D%/stream/registered.h $(fake_image)

unit_tests += tests/stream/test_cuda_register
tests_stream_test_cuda_register_SOURCES = %D%/stream/test_cuda_register.c $(registered)
tests_stream_test_cuda_register_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_register_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_register_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/stream/test_cuda_mixed
tests_stream_test_cuda_mixed_SOURCES = %D%/stream/test_cuda_mixed.c $(registered)
tests_stream_test_cuda_mixed_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_mixed_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_mixed_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/stream/test_cuda_shown
tests_stream_test_cuda_shown_SOURCES = %D%/stream/test_cuda_shown.c $(registered)
tests_stream_test_cuda_shown_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_shown_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_shown_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/device/test_cuda_buffer
tests_device_test_cuda_buffer_SOURCES = %D%/device/test_cuda_buffer.c $(fake_image)
tests_device_test_cuda_buffer_CFLAGS = $(fake_cflags)
tests_device_test_cuda_buffer_LDADD = $(fake_lib)
EXTRA_tests_device_test_cuda_buffer_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/device/test_cuda_maps
tests_device_test_cuda_maps_SOURCES = %D%/device/test_cuda_maps.c $(fake_image)
tests_device_test_cuda_maps_CFLAGS = $(fake_cflags)
tests_device_test_cuda_maps_LDADD = $(fake_lib)
EXTRA_tests_device_test_cuda_maps_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_orders
tests_stream_test_cuda_orders_SOURCES = %D%/stream/test_cuda_orders.c $(fake_image)
tests_stream_test_cuda_orders_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_orders_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_orders_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_watch
tests_stream_test_cuda_watch_SOURCES = %D%/stream/test_cuda_watch.c $(fake_image)
tests_stream_test_cuda_watch_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_watch_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_watch_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_memory
tests_stream_test_cuda_memory_SOURCES = %D%/stream/test_cuda_memory.c $(fake_image)
tests_stream_test_cuda_memory_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_memory_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_memory_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_apart
tests_stream_test_cuda_apart_SOURCES = %D%/stream/test_cuda_apart.c $(fake_image)
tests_stream_test_cuda_apart_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_apart_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_apart_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/stream/test_cuda_messages
tests_stream_test_cuda_messages_SOURCES = %D%/stream/test_cuda_messages.c $(fake_image)
tests_stream_test_cuda_messages_CFLAGS = $(fake_cflags)
tests_stream_test_cuda_messages_LDADD = $(fake_lib)
EXTRA_tests_stream_test_cuda_messages_DEPENDENCIES = tests/fake_cuda/libcuda.la
stream_fixture = %D%/support/stream_fixture.c %D%/support/stream_fixture.h \
	%D%/support/element.c %D%/support/element.h
stream_lib = $(fake_lib) -lm
unit_tests += tests/transports/test_cuda_ipc
tests_transports_test_cuda_ipc_SOURCES = %D%/transports/test_cuda_ipc.c $(stream_fixture)
tests_transports_test_cuda_ipc_CFLAGS = $(fake_cflags)
tests_transports_test_cuda_ipc_LDADD = $(stream_lib)
EXTRA_tests_transports_test_cuda_ipc_DEPENDENCIES = tests/fake_cuda/libcuda.la
unit_tests += tests/exec/test_relay
tests_exec_test_relay_SOURCES = %D%/exec/test_relay.c $(stream_fixture) \
	%D%/exec/queued_fixture.c %D%/exec/queued_fixture.h
tests_exec_test_relay_CFLAGS = $(fake_cflags)
tests_exec_test_relay_LDADD = $(stream_lib)
EXTRA_tests_exec_test_relay_DEPENDENCIES = tests/fake_cuda/libcuda.la

unit_tests += tests/exec/test_queued
tests_exec_test_queued_SOURCES = %D%/exec/test_queued.c $(stream_fixture) \
	%D%/exec/queued_fixture.c %D%/exec/queued_fixture.h
tests_exec_test_queued_CFLAGS = $(fake_cflags)
tests_exec_test_queued_LDADD = $(stream_lib)
EXTRA_tests_exec_test_queued_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_graph_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_graph_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_graph_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_order_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_order_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_order_DEPENDENCIES = tests/fake_cuda/libcuda.la
tests_fake_cuda_test_fake_ipc_CFLAGS = $(fake_cflags)
tests_fake_cuda_test_fake_ipc_LDADD = $(fake_lib)
EXTRA_tests_fake_cuda_test_fake_ipc_DEPENDENCIES = tests/fake_cuda/libcuda.la
endif

fabric_fixture = %D%/sim/fabric_fixture.c %D%/sim/fabric_fixture.h
unit_tests += tests/sim/test_fabric
tests_sim_test_fabric_SOURCES = %D%/sim/test_fabric.c $(fabric_fixture)
tests_sim_test_fabric_CFLAGS = $(check_cflags)
tests_sim_test_fabric_LDADD = $(check_lib)
unit_tests += tests/sim/test_fabric_file
tests_sim_test_fabric_file_SOURCES = %D%/sim/test_fabric_file.c $(fabric_fixture)
tests_sim_test_fabric_file_CFLAGS = $(check_cflags)
tests_sim_test_fabric_file_LDADD = $(check_lib)
unit_tests += tests/topo/test_spare
tests_topo_test_spare_CFLAGS = $(check_cflags)
tests_topo_test_spare_LDADD = libcore.la $(check_lib)
unit_tests += tests/topo/test_rails
tests_topo_test_rails_CFLAGS = $(check_cflags)
tests_topo_test_rails_LDADD = $(check_lib)
unit_tests += tests/topo/test_carrier
tests_topo_test_carrier_CFLAGS = $(check_cflags)
tests_topo_test_carrier_LDADD = $(check_lib) -lm
unit_tests += tests/price/test_prices
tests_price_test_prices_CFLAGS = $(check_cflags)
tests_price_test_prices_LDADD = $(check_lib) -lm
unit_tests += tests/comm/test_measure
tests_comm_test_measure_CFLAGS = $(check_cflags)
tests_comm_test_measure_LDADD = $(check_lib) -lm
tests_comm_test_measure_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
unit_tests += tests/topo/test_hosts
tests_topo_test_hosts_CFLAGS = $(check_cflags)
tests_topo_test_hosts_LDADD = $(check_lib)
unit_tests += tests/topo/test_quota
tests_topo_test_quota_CFLAGS = $(check_cflags)
tests_topo_test_quota_LDADD = $(check_lib)
unit_tests += tests/topo/test_gpus
tests_topo_test_gpus_CFLAGS = $(check_cflags)
tests_topo_test_gpus_LDADD = $(check_lib)
unit_tests += tests/topo/test_topo
tests_topo_test_topo_CFLAGS = $(check_cflags)
tests_topo_test_topo_LDADD = $(check_lib)

# simulations: a second opinion by SimGrid
check_PROGRAMS += tests/sim/test_simgrid
TESTS += tests/sim/test_simgrid
if HAVE_SIMGRID
tests_sim_test_simgrid_SOURCES = %D%/sim/test_simgrid.c %D%/sim/simgrid_replay.cc \
	%D%/sim/simgrid_replay.h
tests_sim_test_simgrid_CFLAGS = $(check_cflags)
tests_sim_test_simgrid_CXXFLAGS = $(AM_CXXFLAGS) $(SIMGRID_CFLAGS)
tests_sim_test_simgrid_LDADD = $(check_lib) $(SIMGRID_LIBS)
else
tests_sim_test_simgrid_SOURCES = %D%/sim/simgrid_missing.c
endif

# transports: one suite for all of them, and what arrives over UCX
unit_tests += tests/transports/conform
tests_transports_conform_SOURCES = %D%/transports/conform.c %D%/transports/conform.h %D%/transports/conform_channel.c \
	%D%/transports/conform_data.c %D%/transports/conform_end.c %D%/transports/conform_far.c %D%/transports/conform_far.h \
	%D%/transports/conform_script.c %D%/transports/conform_share.c %D%/transports/conform_sleep.c \
	%D%/transports/conform_world.c
tests_transports_conform_CFLAGS = $(check_cflags)
tests_transports_conform_LDADD = $(check_lib)
unit_tests += tests/transports/test_shm
tests_transports_test_shm_SOURCES = %D%/transports/test_shm.c %D%/transports/conform.h %D%/transports/conform_data.c \
	%D%/transports/conform_far.c %D%/transports/conform_far.h %D%/transports/conform_share.c %D%/transports/conform_world.c
tests_transports_test_shm_CFLAGS = $(check_cflags)
tests_transports_test_shm_LDADD = $(check_lib)
unit_tests += tests/transports/test_bell
tests_transports_test_bell_SOURCES = %D%/transports/test_bell.c %D%/transports/conform.h %D%/transports/conform_data.c \
	%D%/transports/conform_far.c %D%/transports/conform_far.h %D%/transports/conform_world.c %D%/support/forbid.c \
	%D%/support/forbid.h
tests_transports_test_bell_CFLAGS = $(check_cflags)
tests_transports_test_bell_LDADD = $(check_lib)
unit_tests += tests/transports/test_cma
tests_transports_test_cma_SOURCES = %D%/transports/test_cma.c %D%/support/forbid.c %D%/support/forbid.h
tests_transports_test_cma_CFLAGS = $(check_cflags)
tests_transports_test_cma_LDADD = $(check_lib)
unit_tests += tests/transports/test_ucx
tests_transports_test_ucx_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_LDADD = $(check_lib)

# the library as programs load it that know it only when they run
unit_tests += tests/api/test_dlopen
tests_api_test_dlopen_CFLAGS = $(check_cflags)
tests_api_test_dlopen_LDADD = libworld.la $(check_lib) -ldl

# bootstraps and the control connections
boot_world = %D%/support/boot_world.c %D%/support/boot_world.h
unit_tests += tests/boot/test_boot
tests_boot_test_boot_SOURCES = %D%/boot/test_boot.c $(boot_world)
tests_boot_test_boot_CFLAGS = $(check_cflags)
tests_boot_test_boot_LDADD = $(check_lib)
unit_tests += tests/boot/test_rendezvous
tests_boot_test_rendezvous_SOURCES = %D%/boot/test_rendezvous.c $(boot_world)
tests_boot_test_rendezvous_CFLAGS = $(check_cflags)
tests_boot_test_rendezvous_LDADD = $(check_lib)
unit_tests += tests/boot/test_launch
tests_boot_test_launch_CFLAGS = $(check_cflags)
tests_boot_test_launch_LDADD = libworld.la $(check_lib)
unit_tests += tests/net/test_forbidden
tests_net_test_forbidden_SOURCES = %D%/net/test_forbidden.c %D%/support/forbid.c %D%/support/forbid.h
tests_net_test_forbidden_CFLAGS = $(check_cflags)
tests_net_test_forbidden_LDADD = $(check_lib)
unit_tests += tests/net/test_seal
tests_net_test_seal_CFLAGS = $(check_cflags)
tests_net_test_seal_LDADD = libworld.la $(check_lib)
unit_tests += tests/net/test_door
door_post = %D%/net/door_post.c %D%/net/door_post.h $(boot_world)
tests_net_test_door_SOURCES = %D%/net/test_door.c $(door_post)
tests_net_test_door_CFLAGS = $(check_cflags)
tests_net_test_door_LDADD = $(check_lib)
unit_tests += tests/net/test_in_flight
tests_net_test_in_flight_CFLAGS = $(check_cflags)
tests_net_test_in_flight_LDADD = $(check_lib)
unit_tests += tests/net/test_dial
tests_net_test_dial_SOURCES = %D%/net/test_dial.c $(door_post)
tests_net_test_dial_CFLAGS = $(check_cflags)
tests_net_test_dial_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_ctrl
tests_ctrl_test_ctrl_SOURCES = %D%/ctrl/test_ctrl.c $(boot_world)
tests_ctrl_test_ctrl_CFLAGS = $(check_cflags)
tests_ctrl_test_ctrl_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_ctrl_ask
tests_ctrl_test_ctrl_ask_SOURCES = %D%/ctrl/test_ctrl_ask.c $(boot_world)
tests_ctrl_test_ctrl_ask_CFLAGS = $(check_cflags)
tests_ctrl_test_ctrl_ask_LDADD = $(check_lib)
unit_tests += tests/ctrl/test_death
tests_ctrl_test_death_SOURCES = %D%/ctrl/test_death.c $(boot_world)
tests_ctrl_test_death_CFLAGS = $(check_cflags)
tests_ctrl_test_death_LDADD = $(check_lib)

# the public operations among processes and threads
noinst_LTLIBRARIES += libworld.la liboracle.la
libworld_la_SOURCES = %D%/support/world.c %D%/support/world.h %D%/support/work.c %D%/support/work.h
libworld_la_LIBADD = liboracle.la
liboracle_la_SOURCES = %D%/support/oracle.c %D%/support/oracle.h
liboracle_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
unit_tests += tests/transports/test_tcp_card
tests_transports_test_tcp_card_CFLAGS = $(check_cflags)
tests_transports_test_tcp_card_LDADD = $(check_lib)
unit_tests += tests/transports/test_ucx_open
tests_transports_test_ucx_open_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_open_LDADD = libworld.la $(check_lib)
unit_tests += tests/transports/test_ucx_share
tests_transports_test_ucx_share_CFLAGS = $(check_cflags)
tests_transports_test_ucx_share_LDADD = libworld.la $(check_lib)
unit_tests += tests/transports/test_ucx_end
tests_transports_test_ucx_end_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_transports_test_ucx_end_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_args
tests_run_test_args_CFLAGS = $(check_cflags)
tests_run_test_args_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_cache
tests_run_test_cache_CFLAGS = $(check_cflags)
tests_run_test_cache_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_linear
tests_run_test_linear_CFLAGS = $(check_cflags)
tests_run_test_linear_LDADD = libworld.la $(check_lib)
unit_tests += tests/exec/test_listed
tests_exec_test_listed_CFLAGS = $(check_cflags)
tests_exec_test_listed_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_group
tests_run_test_group_CFLAGS = $(check_cflags)
tests_run_test_group_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_p2p
tests_run_test_p2p_SOURCES = %D%/run/test_p2p.c %D%/run/p2p.h
tests_run_test_p2p_CFLAGS = $(check_cflags)
tests_run_test_p2p_LDADD = libworld.la $(check_lib)
tests_run_test_p2p_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=coll__prog_advance
unit_tests += tests/run/test_p2p_wrong
tests_run_test_p2p_wrong_SOURCES = %D%/run/test_p2p_wrong.c %D%/run/p2p.h
tests_run_test_p2p_wrong_CFLAGS = $(check_cflags)
tests_run_test_p2p_wrong_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_coll
tests_api_test_coll_CFLAGS = $(check_cflags)
tests_api_test_coll_LDADD = libworld.la $(check_lib)
unit_tests += tests/device/test_area
tests_device_test_area_CFLAGS = $(check_cflags)
tests_device_test_area_LDADD = libworld.la $(check_lib)
unit_tests += tests/device/test_first_thread
tests_device_test_first_thread_CFLAGS = $(check_cflags)
tests_device_test_first_thread_LDADD = libworld.la $(check_lib)
unit_tests += tests/proof/test_book
tests_proof_test_book_CFLAGS = $(check_cflags)
tests_proof_test_book_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_mismatch
tests_comm_test_mismatch_CFLAGS = $(check_cflags)
tests_comm_test_mismatch_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_fault
tests_comm_test_fault_SOURCES = %D%/comm/test_fault.c %D%/support/seclude.c %D%/support/seclude.h
tests_comm_test_fault_CFLAGS = $(check_cflags)
tests_comm_test_fault_LDADD = libworld.la $(check_lib)
fork_child = %D%/comm/fork_child.c %D%/comm/fork_child.h
unit_tests += tests/comm/test_fork
tests_comm_test_fork_SOURCES = %D%/comm/test_fork.c $(fork_child)
tests_comm_test_fork_CFLAGS = $(check_cflags)
tests_comm_test_fork_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_fork_own
tests_comm_test_fork_own_SOURCES = %D%/comm/test_fork_own.c $(fork_child)
tests_comm_test_fork_own_CFLAGS = $(check_cflags)
tests_comm_test_fork_own_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_nomem
tests_api_test_nomem_CFLAGS = $(check_cflags)
tests_api_test_nomem_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_background
tests_run_test_background_CFLAGS = $(check_cflags)
tests_run_test_background_LDADD = libworld.la $(check_lib)
unit_tests += tests/exec/test_sleep
tests_exec_test_sleep_SOURCES = %D%/exec/test_sleep.c %D%/support/forbid.c %D%/support/forbid.h
tests_exec_test_sleep_CFLAGS = $(check_cflags)
tests_exec_test_sleep_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_channel
tests_run_test_channel_CFLAGS = $(check_cflags)
tests_run_test_channel_LDADD = libworld.la $(check_lib)
unit_tests += tests/proof/test_odd_orders
tests_proof_test_odd_orders_CFLAGS = $(check_cflags)
tests_proof_test_odd_orders_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_order
tests_run_test_order_CFLAGS = $(check_cflags)
tests_run_test_order_LDADD = libworld.la $(check_lib)
unit_tests += tests/net/test_link
tests_net_test_link_CFLAGS = $(check_cflags)
tests_net_test_link_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_uneven
tests_comm_test_uneven_CFLAGS = $(check_cflags)
tests_comm_test_uneven_LDADD = libworld.la $(check_lib)
unit_tests += tests/ctrl/test_round
tests_ctrl_test_round_CFLAGS = $(check_cflags)
tests_ctrl_test_round_LDADD = $(check_lib)
tests_ctrl_test_round_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=coll__link_send \
	-Wl,--wrap=clock_gettime -Wl,--wrap=coll__reactor_defer_until \
	-Wl,--wrap=coll__reactor_cancel
unit_tests += tests/comm/test_ask
tests_comm_test_ask_CFLAGS = $(check_cflags)
tests_comm_test_ask_LDADD = libworld.la $(check_lib)
tests_comm_test_ask_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=nanosleep \
	-Wl,--wrap=sched_yield -Wl,--wrap=coll__lock_wait \
	-Wl,--wrap=coll__reactor_lock -Wl,--wrap=coll__reactor_poll
unit_tests += tests/comm/test_stall
tests_comm_test_stall_CFLAGS = $(check_cflags)
tests_comm_test_stall_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_leave
tests_comm_test_leave_CFLAGS = $(check_cflags)
tests_comm_test_leave_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_locale
tests_api_test_locale_CFLAGS = $(check_cflags)
tests_api_test_locale_LDADD = libworld.la $(check_lib)
unit_tests += tests/trace/test_log
tests_trace_test_log_CFLAGS = $(check_cflags)
tests_trace_test_log_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_memory
tests_api_test_memory_CFLAGS = $(check_cflags)
tests_api_test_memory_LDADD = libworld.la $(check_lib)
unit_tests += tests/run/test_hot
tests_run_test_hot_CFLAGS = $(check_cflags)
tests_run_test_hot_LDADD = libworld.la $(check_lib)

# random faults among ranks: make check-faults, and some of them in every check
check_PROGRAMS += tests/faults/check_faults
tests_faults_check_faults_SOURCES = %D%/faults/faults.c %D%/faults/faults.h %D%/faults/faults_case.c \
	%D%/faults/faults_judge.c %D%/faults/faults_malloc.c %D%/faults/faults_script.c \
	%D%/support/seclude.c %D%/support/seclude.h
tests_faults_check_faults_LDADD = libcrash.la libworld.la libcore.la -lm
noinst_LTLIBRARIES += libcrash.la
libcrash_la_SOURCES = %D%/faults/faults_crash.c
libcrash_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all

# CHECK_FAULTS="--seed 2 --cases 5000" for others; see tests/faults/check_faults --help
CHECK_FAULTS =
CLEANFILES += faults.out faults.err
check-faults: tests/faults/check_faults
	@tests/faults/check_faults $(CHECK_FAULTS) > faults.out 2> faults.err; \
	status=$$?; cat faults.out; exit $$status

# tests/tools/coll_info.sh: another UCX is loaded than the one that was built with
check_LTLIBRARIES += tests/transports/libother_ucx.la
tests_transports_libother_ucx_la_SOURCES = %D%/transports/other_ucx.c
tests_transports_libother_ucx_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_transports_libother_ucx_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all

# tests/launch/collrun.test: a machine with more processors than a cpu_set_t has room for
check_LTLIBRARIES += tests/launch/libmany_cpus.la
tests_launch_libmany_cpus_la_SOURCES = %D%/launch/many_cpus.c
tests_launch_libmany_cpus_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_launch_libmany_cpus_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all

# tests/net/clones.sh: hosts that cannot be told apart by their ids
check_LTLIBRARIES += tests/libsame_ids.la
tests_libsame_ids_la_SOURCES = %D%/net/same_ids.c
tests_libsame_ids_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_libsame_ids_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all

# tests whose calls of libc come late at random, as on a busy machine:
# make check-jitter CHECK_JITTER="-s '4 5 6' tests/comm/test_fault"; see tests/jitter/run
check_LTLIBRARIES += tests/jitter/libjitter.la
tests_jitter_libjitter_la_SOURCES = %D%/jitter/jitter.c
tests_jitter_libjitter_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_jitter_libjitter_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all
tests_jitter_libjitter_la_LIBADD = -ldl
EXTRA_DIST += %D%/jitter/run
CHECK_JITTER =
check-jitter:
	@$(MAKE) $(AM_MAKEFLAGS) -s check TESTS=
	@CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-10}; $(AM_TESTS_ENVIRONMENT) \
		srcdir=$(srcdir) $(srcdir)/%D%/jitter/run $(CHECK_JITTER)

# operations of the caller's own, the reproducible mode, split
unit_tests += tests/api/test_op
tests_api_test_op_CFLAGS = $(check_cflags)
tests_api_test_op_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_repro
tests_api_test_repro_CFLAGS = $(check_cflags)
tests_api_test_repro_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_float_state
tests_api_test_float_state_CFLAGS = $(check_cflags)
tests_api_test_float_state_LDADD = libworld.la $(check_lib) -lm
unit_tests += tests/comm/test_split
tests_comm_test_split_CFLAGS = $(check_cflags)
tests_comm_test_split_LDADD = libworld.la $(check_lib)
unit_tests += tests/boot/test_scale
tests_boot_test_scale_CFLAGS = $(check_cflags)
tests_boot_test_scale_LDADD = $(check_lib)
unit_tests += tests/boot/test_join
tests_boot_test_join_CFLAGS = $(check_cflags)
tests_boot_test_join_LDADD = libworld.la $(check_lib)
unit_tests += tests/comm/test_many
tests_comm_test_many_CFLAGS = $(check_cflags)
tests_comm_test_many_LDADD = libworld.la $(check_lib)

# the benchmarks' data
unit_tests += tests/bench/test_bench
tests_bench_test_bench_CFLAGS = $(check_cflags)
tests_bench_test_bench_LDADD = libbench.la $(check_lib)

# what benchmarks/compare rests on
unit_tests += tests/bench/test_compare
tests_bench_test_compare_CFLAGS = $(check_cflags)
tests_bench_test_compare_LDADD = libpeer.la $(compare_libs) $(CHECK_LIBS)

check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

if HAVE_ONEDNN
# the trainer: layers, data, state, and several ranks
trainer_tests = tests/trainer/test_trainer_layers tests/trainer/test_trainer_network \
	tests/trainer/test_trainer_data tests/trainer/test_trainer_state \
	tests/trainer/test_trainer_ranks tests/trainer/test_trainer_finite \
	tests/trainer/test_trainer_torch tests/trainer/test_trainer_resnet \
	tests/trainer/test_trainer_loader tests/trainer/test_trainer_augment \
	tests/trainer/test_trainer_rate tests/trainer/test_trainer_config \
	tests/trainer/test_trainer_rules tests/trainer/test_trainer_loss \
	tests/trainer/test_trainer_args tests/trainer/test_trainer_optim \
	tests/trainer/test_trainer_sampler
check_PROGRAMS += $(trainer_tests)
TESTS += $(trainer_tests)
tests_trainer_test_trainer_layers_SOURCES = %D%/trainer/test_trainer_layers.c \
	%D%/trainer/trainer_layer.c %D%/trainer/trainer_layer.h
tests_trainer_test_trainer_layers_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_layers_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_loss_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_loss_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_network_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_network_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_loader_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_loader_LDADD = libtrainer.la $(CHECK_LIBS) -lpthread -lm
tests_trainer_test_trainer_data_CFLAGS = $(check_cflags) $(ZLIB_CFLAGS)
tests_trainer_test_trainer_data_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
tests_trainer_test_trainer_augment_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_augment_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_config_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_config_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_rate_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_rate_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_args_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_args_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_optim_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_optim_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_sampler_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_sampler_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_state_CFLAGS = $(check_cflags) $(ZLIB_CFLAGS)
tests_trainer_test_trainer_state_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
trainer_job = %D%/trainer/trainer_job.c %D%/trainer/trainer_job.h
tests_trainer_test_trainer_ranks_SOURCES = %D%/trainer/test_trainer_ranks.c %D%/trainer/trainer_ranks.c \
	%D%/trainer/trainer_ranks.h %D%/trainer/trainer_ranks_split.c $(trainer_job)
tests_trainer_test_trainer_ranks_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_ranks_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_finite_SOURCES = %D%/trainer/test_trainer_finite.c $(trainer_job)
tests_trainer_test_trainer_finite_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_finite_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
trainer_digest = %D%/trainer/trainer_digest.c %D%/trainer/trainer_digest.h
tests_trainer_test_trainer_resnet_SOURCES = %D%/trainer/test_trainer_resnet.c $(trainer_digest)
tests_trainer_test_trainer_resnet_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_resnet_LDADD = libtrainer.la $(CHECK_LIBS) $(JANSSON_LIBS) -lm
tests_trainer_test_trainer_rules_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_rules_LDADD = libtrainer.la $(CHECK_LIBS) $(JANSSON_LIBS) -lm
tests_trainer_test_trainer_torch_SOURCES = %D%/trainer/test_trainer_torch.c $(trainer_job) \
	$(trainer_digest)
tests_trainer_test_trainer_torch_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_torch_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) \
	$(JANSSON_LIBS) -lm
endif
endif

# fuzzers, for as long as one likes: tests/plan/fuzz_load -max_len=4096 CORPUS
if HAVE_FUZZERS
check_PROGRAMS += tests/plan/fuzz_load
tests_plan_fuzz_load_LDADD = libcore.la
tests_plan_fuzz_load_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif

# what only a GPU can show: make check-gpu, where there is one; every check only tries
# the programs without
if HAVE_CUDA
gpu_common = %D%/gpu/gpu.c %D%/gpu/gpu.h %D%/gpu/gpu_ptx.c
check_PROGRAMS += tests/gpu/driver_rules tests/gpu/mechanisms
tests_gpu_driver_rules_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_driver_rules_LDADD = -ldl
tests_gpu_driver_rules_SOURCES = $(gpu_common) \
	%D%/gpu/driver_rules.c %D%/gpu/driver_rules.h \
	%D%/gpu/driver_rules_calls.c %D%/gpu/driver_rules_calls.h \
	%D%/gpu/driver_rules_capture.c %D%/gpu/driver_rules_context.c \
	%D%/gpu/driver_rules_copy.c %D%/gpu/driver_rules_fault.c \
	%D%/gpu/driver_rules_graph.c %D%/gpu/driver_rules_host.c \
	%D%/gpu/driver_rules_init.c %D%/gpu/driver_rules_ipc.c \
	%D%/gpu/driver_rules_ipc_more.c %D%/gpu/driver_rules_kernel.c \
	%D%/gpu/driver_rules_memop.c %D%/gpu/driver_rules_pointer.c \
	%D%/gpu/driver_rules_pool.c %D%/gpu/driver_rules_queue.c \
	%D%/gpu/driver_rules_report.c %D%/gpu/driver_rules_report.h \
	%D%/gpu/driver_rules_stream.c %D%/gpu/driver_rules_tools.c \
	%D%/gpu/driver_rules_unsafe.c %D%/gpu/driver_rules_vmm.c
tests_gpu_mechanisms_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_mechanisms_LDADD = -ldl
tests_gpu_mechanisms_SOURCES = $(gpu_common) \
	%D%/gpu/mechanisms.c %D%/gpu/mechanisms.h \
	%D%/gpu/mechanisms_copies.c %D%/gpu/mechanisms_costs.c \
	%D%/gpu/mechanisms_flags.c %D%/gpu/mechanisms_kernels.c \
	%D%/gpu/mechanisms_rank.c
check_PROGRAMS += tests/gpu/ranks
tests_gpu_ranks_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_ranks_LDADD = libworld.la libcore.la -ldl -lm
tests_gpu_ranks_SOURCES = $(gpu_common) %D%/gpu/ranks.c \
	%D%/gpu/ranks.h %D%/gpu/ranks_random.c \
	%D%/gpu/ranks_register.c $(fake_image)
EXTRA_DIST += %D%/fake_cuda/image.c
gpu_programs = tests/gpu/driver_rules tests/gpu/mechanisms tests/gpu/ranks
if HAVE_NVCC
check_PROGRAMS += tests/gpu/kernels
gpu_programs += tests/gpu/kernels
tests_gpu_kernels_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
tests_gpu_kernels_LDADD = libcore.la -ldl -lm
tests_gpu_kernels_SOURCES = $(gpu_common) \
	%D%/gpu/bench.c %D%/gpu/bench.h %D%/gpu/kernels.c \
	%D%/gpu/kernels_driver.c %D%/gpu/kernels_driver.h \
	%D%/support/element.c %D%/support/element.h %D%/support/kernel_cases.c %D%/support/kernel_cases.h
endif
gpu_scripts = %D%/stream/cuda.sh %D%/stream/cuda_threads.sh %D%/gpu/gpu.sh %D%/fake_cuda/fake_rules.sh \
	%D%/transports/ucx_cuda.sh %D%/gpu/gpu_check.sh
check_PROGRAMS += tests/transports/ucx_device
tests_transports_ucx_device_SOURCES = %D%/transports/ucx_device.c
tests_transports_ucx_device_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS) $(UCX_CFLAGS)
tests_transports_ucx_device_LDADD = tests/fake_cuda/libcuda.la $(UCX_LIBS)
TESTS += $(gpu_scripts)
# does the bundle for bare machines build?
check-bundle:
	@dir=$$(mktemp -d) && $(srcdir)/%D%/gpu/bundle.sh $$dir/bundle.tar && \
	env -i PATH="$$PATH" $(srcdir)/%D%/gpu/library.sh $$dir/bundle.tar $$dir/library \
		> $$dir/log 2>&1 && $$dir/library/run $$dir/library/build/tests/gpu/ranks --list \
		> /dev/null && echo "PASS: check-bundle"; status=$$?; \
	test $$status = 0 || tail $$dir/log; rm -rf $$dir; exit $$status
check-gpu: $(gpu_programs)
	@$(srcdir)/%D%/gpu/check.sh gpu-reports tests/gpu || test $$? = 77
else
check-gpu check-bundle:
	@echo "$@: skipped: configure found no cuda.h"
endif
clean-local:
	rm -rf gpu-reports jitter
dist_check_SCRIPTS += %D%/stream/cuda.sh %D%/stream/cuda_threads.sh %D%/gpu/gpu.sh %D%/fake_cuda/fake_rules.sh \
	%D%/transports/ucx_cuda.sh %D%/gpu/gpu_check.sh
EXTRA_DIST += %D%/fake_cuda/README.md
EXTRA_DIST += %D%/gpu/README.md %D%/gpu/build.sh %D%/gpu/bundle.sh \
	%D%/gpu/check.sh %D%/gpu/library.sh \
	%D%/gpu/refusing_driver.c \
	%D%/gpu/reports/2026-11-22-h100-driver-580.159-check.json \
	%D%/gpu/reports/2026-11-22-h100-driver-580.159-kernels.json \
	%D%/gpu/reports/2026-11-22-h100-driver-580.159-kernels-2.json \
	%D%/gpu/reports/2026-11-22-h100-driver-580.159-mechanisms.json \
	%D%/gpu/reports/2026-11-22-h100-driver-580.159-rules.json

# RDMA between emulated machines: make check-rdma
if HAVE_CHECK
check_PROGRAMS += tests/rdma/ranks tests/rdma/tsc_khz
tests_rdma_ranks_SOURCES = %D%/rdma/ranks.c
tests_rdma_ranks_LDADD = libworld.la libcore.la
check-rdma: all tests/transports/conform tests/rdma/ranks tests/rdma/tsc_khz
	@srcdir=$(srcdir) $(srcdir)/%D%/rdma/run
else
check-rdma:
	@echo "$@: skipped: configure found no Check"
endif
EXTRA_DIST += %D%/rdma/guests %D%/rdma/job %D%/rdma/run \
	%D%/rdma/reports/last.txt

# scripts: the programs, real launchers, the pages
check_PROGRAMS += tests/support/without
tests_support_without_SOURCES = %D%/support/without.c %D%/support/forbid.c %D%/support/forbid.h
check_PROGRAMS += tests/bench/prices_probe
tests_bench_prices_probe_LDADD = libcoll.la
check_PROGRAMS += tests/boot/boot_probe
tests_boot_boot_probe_LDADD = libcore.la
check_PROGRAMS += tests/boot/rank_starts
tests_boot_rank_starts_LDADD = libcoll.la
check_PROGRAMS += tests/trace/trace_probe
tests_trace_trace_probe_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_trace_trace_probe_LDADD = libcoll.la $(JANSSON_LIBS)
check_PROGRAMS += tests/bench/test_crossing
tests_bench_test_crossing_LDADD = libcoll.la
check_PROGRAMS += tests/support/host_probe
tests_support_host_probe_LDADD = libcore.la
check_PROGRAMS += tests/api/host_state
tests_api_host_state_LDADD = libcoll.la -lm
check_PROGRAMS += tests/net/enemy tests/net/wire
check_PROGRAMS += tests/bench/compare_fake
tests_bench_compare_fake_LDADD = libpeer.la
scripts = \
	%D%/style/check_layers.sh \
	%D%/style/kinds.sh \
	%D%/faults/faults.sh \
	%D%/launch/collrun.test %D%/launch/collrun_files.test \
	%D%/boot/boot_launch.test %D%/boot/rank_child.test \
	%D%/net/hosts.sh \
	%D%/tools/coll_info.sh \
	%D%/tools/coll_plan.sh \
	%D%/tools/coll_tune.sh \
	%D%/bench/bench.sh \
	%D%/bench/compare.sh \
	%D%/bench/compare_hosts.sh \
	%D%/bench/crossing.sh \
	%D%/bench/prices.sh \
	%D%/run/progress.sh %D%/run/real_time.sh \
	%D%/transports/shm.sh \
	%D%/trace/trace.sh %D%/trace/history.sh \
	%D%/tools/valgrind.sh \
	%D%/tools/quickstart.sh \
	%D%/tools/readme.sh \
	%D%/api/header.sh %D%/api/host_state.sh \
	%D%/tools/manual.sh %D%/tools/pkgconfig.sh \
	%D%/launch/hydra.sh \
	%D%/launch/mpirun.sh \
	%D%/net/net.sh \
	%D%/launch/orphan.sh \
	%D%/net/clones.sh %D%/net/collrun.sh %D%/net/links.sh %D%/net/names.sh %D%/net/nodes.sh %D%/net/ports.sh %D%/net/scale.sh %D%/net/vanish.sh \
	%D%/net/strangers.sh \
	%D%/launch/slurm.sh \
	%D%/bench/train_compare.sh \
	%D%/trainer/trainer.sh \
	%D%/trainer/trainer_rows.sh %D%/trainer/trainer_wrong.sh \
	%D%/trainer/trainer_run.sh \
	%D%/trainer/trainer_split.sh
dist_check_SCRIPTS += $(scripts)
TESTS += $(scripts)

# what takes minutes each
long_scripts = %D%/api/abi.sh %D%/trainer/mnist.test %D%/trainer/cifar.test %D%/trainer/cifar_slurm.test \
	%D%/trainer/trainer_warmup.test
dist_check_SCRIPTS += $(long_scripts)

EXTRA_DIST += \
	%D%/api/libcoll-0.1.0.abi \
	%D%/faults/faults.txt \
	%D%/launch/launch.sh \
	%D%/README \
	%D%/support/patience.h \
	%D%/support/patience.sh %D%/support/verdict.sh \
	%D%/support/program.sh \
	%D%/launch/slurm_here.sh \
	%D%/trainer/trainer_cifar.sh \
	%D%/trainer/trainer_program.sh \
	%D%/support/lsan.supp \
	%D%/support/mark.h %D%/support/suite.h \
	%D%/net/hosts %D%/net/rsh %D%/net/run \
	%D%/net/slurm-up %D%/net/world.sh \
	%D%/kinds \
	%D%/run_all \
	%D%/support/summary \
	%D%/support/timed \
	%D%/topo/README \
	%D%/topo/cables.topo \
	%D%/topo/cube_mesh.topo \
	%D%/topo/dgx.topo \
	%D%/topo/dragonfly.topo \
	%D%/topo/expect/cables.expect \
	%D%/topo/expect/cube_mesh.expect \
	%D%/topo/expect/dgx.expect \
	%D%/topo/expect/dragonfly.expect \
	%D%/topo/expect/fattree.expect \
	%D%/topo/expect/four_numa.expect \
	%D%/topo/expect/gpu_pairs.expect \
	%D%/topo/expect/gpus_nvswitch.expect \
	%D%/topo/expect/gpus_pcie.expect \
	%D%/topo/expect/mixed.expect \
	%D%/topo/expect/nic_down.expect \
	%D%/topo/expect/numa4.expect \
	%D%/topo/expect/one_socket.expect \
	%D%/topo/expect/pcie4.expect \
	%D%/topo/expect/rails.expect \
	%D%/topo/expect/switch.expect \
	%D%/topo/expect/torus.expect \
	%D%/topo/expect/two_sockets.expect \
	%D%/topo/expect/vga192.expect \
	%D%/topo/fattree.topo \
	%D%/topo/flat.topo \
	%D%/topo/four_numa.txt \
	%D%/topo/four_numa.xml \
	%D%/topo/gpu_pairs.topo \
	%D%/topo/gpus_nvswitch.txt \
	%D%/topo/gpus_nvswitch.xml \
	%D%/topo/gpus_pcie.txt \
	%D%/topo/gpus_pcie.xml \
	%D%/topo/hosts31.topo %D%/topo/hosts43.topo %D%/topo/hosts5111.topo \
	%D%/topo/hosts8.topo \
	%D%/topo/ib200.topo \
	%D%/topo/mixed.topo \
	%D%/topo/nic_down.topo \
	%D%/topo/numa4.topo \
	%D%/topo/one_socket.topo \
	%D%/topo/pcie4.topo \
	%D%/topo/rails.topo \
	%D%/topo/switch.topo \
	%D%/topo/torus.topo \
	%D%/topo/two_sockets.txt \
	%D%/topo/two_sockets.xml \
	%D%/topo/vga192.xml \
	%D%/trainer/record_resnet.py \
	%D%/trainer/record_rules.py \
	%D%/trainer/record_torch.py \
	%D%/trainer/resnet.json \
	%D%/trainer/rules.json \
	%D%/trainer/torch.json \
	%D%/support/tsan.supp

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
