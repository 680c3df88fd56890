# SPDX-License-Identifier: BSD-3-Clause

# tests/launch/collrun.test: a machine with more processors than a cpu_set_t has room for
if HAVE_CHECK
check_LTLIBRARIES += tests/launch/libmany_cpus.la
tests_launch_libmany_cpus_la_SOURCES = %D%/many_cpus.c
tests_launch_libmany_cpus_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_launch_libmany_cpus_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all
endif
scripts += %D%/collrun.test %D%/collrun_files.test %D%/early_end.test %D%/hydra.sh %D%/mpirun.sh \
	%D%/orphan.sh %D%/slurm.sh
EXTRA_DIST += %D%/launch.sh %D%/slurm_here.sh

# tests/launch/elastic.test: ranks that outlive others
check_PROGRAMS += tests/launch/elastic_loop
tests_launch_elastic_loop_LDADD = libcoll.la
scripts += %D%/elastic.test
