# Unit tests in Check link libcore.la, so that they see the internals; scripts
# try the programs from the outside.  Whatever a machine cannot run exits with
# 77 and the reason.

# The environment of every test.  With its hooks into mmap UCX does not run under
# the thread sanitizer; hwloc's pci plugin leaks what libpciaccess gave it; the leak
# sanitizer needs whole stacks to know a leak of another library.
AM_TESTS_ENVIRONMENT = \
	UCX_MEM_MMAP_HOOK_MODE=none; export UCX_MEM_MMAP_HOOK_MODE; \
	HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS; \
	TSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/tsan.supp:atexit_sleep_ms=0; \
	export TSAN_OPTIONS; \
	LSAN_OPTIONS=suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0; \
	export LSAN_OPTIONS; \
	ASAN_OPTIONS=fast_unwind_on_malloc=0; export ASAN_OPTIONS; \
	CC="$(CC)"; export CC; \
	TEST_LDFLAGS="$(COLL_LDFLAGS)"; export TEST_LDFLAGS;

check_lib = libcore.la $(CHECK_LIBS)
check_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -include tests/mark.h

if HAVE_CHECK
unit_tests =

# plans, kernels, topology
unit_tests += tests/test_load
tests_test_load_CFLAGS = $(check_cflags)
tests_test_load_LDADD = $(check_lib)
unit_tests += tests/test_plan
tests_test_plan_CFLAGS = $(check_cflags)
tests_test_plan_LDADD = $(check_lib)
unit_tests += tests/test_algo
tests_test_algo_CFLAGS = $(check_cflags)
tests_test_algo_LDADD = $(check_lib)
unit_tests += tests/test_edges
tests_test_edges_CFLAGS = $(check_cflags)
tests_test_edges_LDADD = $(check_lib)
unit_tests += tests/test_mutation
tests_test_mutation_CFLAGS = $(check_cflags)
tests_test_mutation_LDADD = $(check_lib)
unit_tests += tests/test_flow
tests_test_flow_CFLAGS = $(check_cflags)
tests_test_flow_LDADD = $(check_lib)
unit_tests += tests/test_forward
tests_test_forward_CFLAGS = $(check_cflags)
tests_test_forward_LDADD = $(check_lib)
unit_tests += tests/test_tune
tests_test_tune_CFLAGS = $(check_cflags)
tests_test_tune_LDADD = $(check_lib)
unit_tests += tests/test_sim
tests_test_sim_CFLAGS = $(check_cflags)
tests_test_sim_LDADD = $(check_lib) -lm
unit_tests += tests/test_copy
tests_test_copy_CFLAGS = $(check_cflags)
tests_test_copy_LDADD = $(check_lib)
unit_tests += tests/test_number
tests_test_number_SOURCES = %D%/test_number.c %D%/element.c %D%/element.h
tests_test_number_CFLAGS = $(check_cflags)
tests_test_number_LDADD = $(check_lib) -lm
unit_tests += tests/test_reduce
tests_test_reduce_SOURCES = %D%/test_reduce.c %D%/element.c %D%/element.h
tests_test_reduce_CFLAGS = $(check_cflags)
tests_test_reduce_LDADD = $(check_lib) -lm
fabric_fixture = %D%/fabric_fixture.c %D%/fabric_fixture.h
unit_tests += tests/test_fabric
tests_test_fabric_SOURCES = %D%/test_fabric.c $(fabric_fixture)
tests_test_fabric_CFLAGS = $(check_cflags)
tests_test_fabric_LDADD = $(check_lib)
unit_tests += tests/test_fabric_file
tests_test_fabric_file_SOURCES = %D%/test_fabric_file.c $(fabric_fixture)
tests_test_fabric_file_CFLAGS = $(check_cflags)
tests_test_fabric_file_LDADD = $(check_lib)
unit_tests += tests/test_topo
tests_test_topo_CFLAGS = $(check_cflags)
tests_test_topo_LDADD = $(check_lib)

# simulations: a second opinion by SimGrid
check_PROGRAMS += tests/test_simgrid
TESTS += tests/test_simgrid
if HAVE_SIMGRID
tests_test_simgrid_SOURCES = %D%/test_simgrid.c %D%/simgrid_replay.cc \
	%D%/simgrid_replay.h
tests_test_simgrid_CFLAGS = $(check_cflags)
tests_test_simgrid_CXXFLAGS = $(AM_CXXFLAGS) $(SIMGRID_CFLAGS)
tests_test_simgrid_LDADD = $(check_lib) $(SIMGRID_LIBS)
else
tests_test_simgrid_SOURCES = %D%/simgrid_missing.c
endif

# transports: one suite for all of them, and what arrives over UCX
unit_tests += tests/conform
tests_conform_SOURCES = %D%/conform.c %D%/conform.h %D%/conform_data.c \
	%D%/conform_end.c %D%/conform_script.c %D%/conform_share.c \
	%D%/conform_world.c
tests_conform_CFLAGS = $(check_cflags)
tests_conform_LDADD = $(check_lib)
unit_tests += tests/test_shm
tests_test_shm_SOURCES = %D%/test_shm.c %D%/conform.h %D%/conform_data.c \
	%D%/conform_share.c %D%/conform_world.c
tests_test_shm_CFLAGS = $(check_cflags)
tests_test_shm_LDADD = $(check_lib)
unit_tests += tests/test_cma
tests_test_cma_SOURCES = %D%/test_cma.c %D%/forbid.c %D%/forbid.h
tests_test_cma_CFLAGS = $(check_cflags)
tests_test_cma_LDADD = $(check_lib)
unit_tests += tests/test_ucx
tests_test_ucx_CFLAGS = $(check_cflags) $(UCX_CFLAGS)
tests_test_ucx_LDADD = $(check_lib)

# bootstraps and the control connections
boot_world = %D%/boot_world.c %D%/boot_world.h
unit_tests += tests/test_boot
tests_test_boot_SOURCES = %D%/test_boot.c $(boot_world)
tests_test_boot_CFLAGS = $(check_cflags)
tests_test_boot_LDADD = $(check_lib)
unit_tests += tests/test_rendezvous
tests_test_rendezvous_SOURCES = %D%/test_rendezvous.c $(boot_world)
tests_test_rendezvous_CFLAGS = $(check_cflags)
tests_test_rendezvous_LDADD = $(check_lib)
unit_tests += tests/test_ctrl
tests_test_ctrl_SOURCES = %D%/test_ctrl.c $(boot_world)
tests_test_ctrl_CFLAGS = $(check_cflags)
tests_test_ctrl_LDADD = $(check_lib)
unit_tests += tests/test_death
tests_test_death_SOURCES = %D%/test_death.c $(boot_world)
tests_test_death_CFLAGS = $(check_cflags)
tests_test_death_LDADD = $(check_lib)

# the public operations among processes and threads
noinst_LTLIBRARIES += libworld.la
libworld_la_SOURCES = %D%/world.c %D%/world.h %D%/oracle.c %D%/oracle.h \
	%D%/work.c %D%/work.h
unit_tests += tests/test_args
tests_test_args_CFLAGS = $(check_cflags)
tests_test_args_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_group
tests_test_group_CFLAGS = $(check_cflags)
tests_test_group_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_p2p
tests_test_p2p_CFLAGS = $(check_cflags)
tests_test_p2p_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_coll
tests_test_coll_CFLAGS = $(check_cflags)
tests_test_coll_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_area
tests_test_area_CFLAGS = $(check_cflags)
tests_test_area_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_book
tests_test_book_CFLAGS = $(check_cflags)
tests_test_book_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_fault
tests_test_fault_CFLAGS = $(check_cflags)
tests_test_fault_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_memory
tests_test_memory_CFLAGS = $(check_cflags)
tests_test_memory_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_hot
tests_test_hot_CFLAGS = $(check_cflags)
tests_test_hot_LDADD = libworld.la $(check_lib)

# operations of the caller's own, the reproducible mode, split
unit_tests += tests/test_op
tests_test_op_CFLAGS = $(check_cflags)
tests_test_op_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_repro
tests_test_repro_CFLAGS = $(check_cflags)
tests_test_repro_LDADD = libworld.la $(check_lib)
unit_tests += tests/test_split
tests_test_split_CFLAGS = $(check_cflags)
tests_test_split_LDADD = libworld.la $(check_lib)

# the benchmarks' data
unit_tests += tests/test_bench
tests_test_bench_CFLAGS = $(check_cflags)
tests_test_bench_LDADD = libbench.la $(check_lib)

# what benchmarks/compare rests on
unit_tests += tests/test_compare
tests_test_compare_CFLAGS = $(check_cflags)
tests_test_compare_LDADD = libpeer.la $(compare_libs) $(CHECK_LIBS)

check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

if HAVE_ONEDNN
# the trainer: layers, data, state, and several ranks
trainer_tests = tests/test_trainer_layers tests/test_trainer_network \
	tests/test_trainer_data tests/test_trainer_state tests/test_trainer_ranks
check_PROGRAMS += $(trainer_tests)
TESTS += $(trainer_tests)
tests_test_trainer_layers_CFLAGS = $(check_cflags)
tests_test_trainer_layers_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_test_trainer_network_CFLAGS = $(check_cflags)
tests_test_trainer_network_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_test_trainer_data_CFLAGS = $(check_cflags) $(ZLIB_CFLAGS)
tests_test_trainer_data_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
tests_test_trainer_state_CFLAGS = $(check_cflags)
tests_test_trainer_state_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_test_trainer_ranks_CFLAGS = $(check_cflags)
tests_test_trainer_ranks_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
endif
endif

# fuzzers, for as long as one likes: tests/fuzz_load -max_len=4096 CORPUS
if HAVE_FUZZERS
check_PROGRAMS += tests/fuzz_load
tests_fuzz_load_LDADD = libcore.la
tests_fuzz_load_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif

# scripts: the programs, real launchers, the README's first program
check_PROGRAMS += tests/without_cma
tests_without_cma_SOURCES = %D%/without_cma.c %D%/forbid.c %D%/forbid.h
check_PROGRAMS += tests/boot_probe
tests_boot_probe_LDADD = libcore.la
check_PROGRAMS += tests/compare_fake
tests_compare_fake_LDADD = libpeer.la
scripts = \
	%D%/check_layers.sh \
	%D%/collrun.test \
	%D%/boot_launch.test \
	%D%/coll_info.sh \
	%D%/coll_plan.sh \
	%D%/coll_tune.sh \
	%D%/bench.sh \
	%D%/compare.sh \
	%D%/shm.sh \
	%D%/valgrind.sh \
	%D%/readme.sh \
	%D%/mpirun.sh \
	%D%/slurm.sh \
	%D%/trainer.sh \
	%D%/mnist.sh
dist_check_SCRIPTS += $(scripts)
TESTS += $(scripts)

EXTRA_DIST += \
	%D%/launch.sh \
	%D%/program.sh \
	%D%/lsan.supp \
	%D%/mark.h \
	%D%/net/slurm-up \
	%D%/run_all \
	%D%/summary \
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
	%D%/topo/expect/mixed.expect \
	%D%/topo/expect/nic_down.expect \
	%D%/topo/expect/numa4.expect \
	%D%/topo/expect/one_socket.expect \
	%D%/topo/expect/pcie4.expect \
	%D%/topo/expect/rails.expect \
	%D%/topo/expect/switch.expect \
	%D%/topo/expect/torus.expect \
	%D%/topo/expect/two_sockets.expect \
	%D%/topo/fattree.topo \
	%D%/topo/flat.topo \
	%D%/topo/four_numa.txt \
	%D%/topo/four_numa.xml \
	%D%/topo/hosts8.topo \
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
	%D%/tsan.supp

# for run_all, which runs some side by side
.PHONY: list-tests
list-tests:
	@echo $(TESTS)
