# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
kernel_cases = %D%/kernel_cases.c %D%/kernel_cases.h %D%/element.c \
	%D%/element.h lib/device/cuda_table.c
if HAVE_CUDA
stream_fixture = %D%/stream_fixture.c %D%/stream_fixture.h %D%/stream_hosts.c \
	%D%/element.c %D%/element.h
stream_lib = $(fake_lib) -lm
endif

# what a thread allocates, locks and asks of the system
hot = %D%/hot.c %D%/hot.h

# bootstraps and the control connections
boot_world = %D%/boot_world.c %D%/boot_world.h

# the public operations among processes and threads
noinst_LTLIBRARIES += libworld.la liboracle.la
libworld_la_SOURCES = %D%/world.c %D%/world.h %D%/work.c %D%/work.h
libworld_la_LIBADD = liboracle.la
liboracle_la_SOURCES = %D%/oracle.c %D%/oracle_draw.c %D%/oracle.h %D%/parts.h
liboracle_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all

# the tests of a program in several processes
noinst_LTLIBRARIES += libside.la
libside_la_SOURCES = %D%/side_by_side.c %D%/side_by_side.h
endif

# scripts: the programs, real launchers, the pages
check_PROGRAMS += tests/support/without
tests_support_without_SOURCES = %D%/without.c %D%/forbid.c %D%/forbid.h
check_PROGRAMS += tests/support/host_probe
tests_support_host_probe_LDADD = libcore.la
EXTRA_DIST += %D%/files.h %D%/limits.sh %D%/patience.h %D%/patience.sh %D%/python.sh %D%/verdict.sh \
	%D%/program.sh %D%/installing.sh \
	%D%/lsan.supp %D%/lsan_ucx.supp %D%/mark.h %D%/suite.h %D%/summary %D%/timed %D%/tsan.supp
