# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
sim_fixture = %D%/sim_fixture.c %D%/sim_fixture.h
unit_tests += tests/sim/test_sim
tests_sim_test_sim_SOURCES = %D%/test_sim.c $(sim_fixture)
tests_sim_test_sim_CFLAGS = $(check_cflags)
tests_sim_test_sim_LDADD = $(check_lib) -lm

fabric_fixture = %D%/fabric_fixture.c %D%/fabric_fixture.h
unit_tests += tests/sim/test_fabric
tests_sim_test_fabric_SOURCES = %D%/test_fabric.c $(fabric_fixture)
tests_sim_test_fabric_CFLAGS = $(check_cflags)
tests_sim_test_fabric_LDADD = $(check_lib)
unit_tests += tests/sim/test_fabric_file
tests_sim_test_fabric_file_SOURCES = %D%/test_fabric_file.c $(fabric_fixture)
tests_sim_test_fabric_file_CFLAGS = $(check_cflags)
tests_sim_test_fabric_file_LDADD = $(check_lib)

# simulations: a second opinion by SimGrid
check_PROGRAMS += tests/sim/test_simgrid
TESTS += tests/sim/test_simgrid
if HAVE_SIMGRID
tests_sim_test_simgrid_SOURCES = %D%/test_simgrid.c %D%/simgrid_replay.cc \
	%D%/simgrid_replay.h
tests_sim_test_simgrid_CFLAGS = $(check_cflags)
tests_sim_test_simgrid_CXXFLAGS = $(AM_CXXFLAGS) $(SIMGRID_CFLAGS)
tests_sim_test_simgrid_LDADD = $(check_lib) $(SIMGRID_LIBS)
else
tests_sim_test_simgrid_SOURCES = %D%/simgrid_missing.c
endif
endif
