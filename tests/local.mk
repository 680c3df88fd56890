# Unit tests in Check link libcore.la, so that they see the internals.

if HAVE_CHECK
# transports, all of them
check_PROGRAMS += tests/conform
TESTS += tests/conform
tests_conform_SOURCES = %D%/conform.c %D%/conform.h %D%/conform_world.c
tests_conform_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_conform_LDADD = libcore.la $(CHECK_LIBS)
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
dist_check_SCRIPTS += %D%/mpirun.sh %D%/slurm.sh %D%/readme.sh
EXTRA_DIST += %D%/launch.sh %D%/net/slurm-up %D%/run_all %D%/summary

TESTS += %D%/mpirun.sh %D%/slurm.sh %D%/readme.sh

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

# the trainer: layers, data, state, and several ranks
# With its hooks into mmap UCX does not run under the thread sanitizer.
AM_TESTS_ENVIRONMENT = UCX_MEM_MMAP_HOOK_MODE=none; export UCX_MEM_MMAP_HOOK_MODE; \
	CC="$(CC)"; export CC; COLL_LDFLAGS="$(COLL_LDFLAGS)"; export COLL_LDFLAGS;

# lib/boot and collrun
check_PROGRAMS += tests/boot_probe
dist_check_SCRIPTS += %D%/collrun.test %D%/boot_launch.test
TESTS += %D%/collrun.test %D%/boot_launch.test
tests_boot_probe_LDADD = libcore.la
if HAVE_CHECK
boot_tests = tests/test_boot tests/test_rendezvous tests/test_ctrl \
	tests/test_death
boot_world = %D%/boot_world.c %D%/boot_world.h
check_PROGRAMS += $(boot_tests)
TESTS += $(boot_tests)
tests_test_boot_SOURCES = %D%/test_boot.c $(boot_world)
tests_test_boot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_boot_LDADD = libcore.la $(CHECK_LIBS)
tests_test_rendezvous_SOURCES = %D%/test_rendezvous.c $(boot_world)
tests_test_rendezvous_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_rendezvous_LDADD = libcore.la $(CHECK_LIBS)
tests_test_ctrl_SOURCES = %D%/test_ctrl.c $(boot_world)
tests_test_ctrl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_ctrl_LDADD = libcore.la $(CHECK_LIBS)
tests_test_death_SOURCES = %D%/test_death.c $(boot_world)
tests_test_death_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_death_LDADD = libcore.la $(CHECK_LIBS)
endif
# benchmarks: their data, and the programs
if HAVE_CHECK
check_PROGRAMS += tests/test_bench
tests_test_bench_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_bench_LDADD = libbench.la libcore.la $(CHECK_LIBS)
TESTS += tests/test_bench
endif
dist_check_SCRIPTS += %D%/bench.sh
TESTS += %D%/bench.sh
# the trainer, one rank: layers, data, state
if HAVE_CHECK
if HAVE_ONEDNN
TRAINER_TESTS = tests/test_trainer_layers tests/test_trainer_data \
	tests/test_trainer_state tests/test_trainer_ranks
check_PROGRAMS += $(TRAINER_TESTS)
TESTS += $(TRAINER_TESTS)
tests_test_trainer_layers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_trainer_layers_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_test_trainer_data_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ZLIB_CFLAGS)
tests_test_trainer_data_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
tests_test_trainer_state_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_trainer_state_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_test_trainer_ranks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_trainer_ranks_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
endif
endif

# coll_train from the outside
dist_check_SCRIPTS += %D%/trainer.sh %D%/mnist.sh
TESTS += %D%/trainer.sh %D%/mnist.sh
