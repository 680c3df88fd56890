# One driver, one file an operation; each program is a pair of an operation and
# a mode.  They link libcoll.la only.
noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = %D%/bench.h %D%/bench.c %D%/bench_args.c \
	%D%/bench_data.c %D%/bench_report.c \
	%D%/op_allgather.c %D%/op_allreduce.c %D%/op_barrier.c \
	%D%/op_broadcast.c

bin_PROGRAMS += benchmarks/allreduce_bw benchmarks/allreduce_lat \
	benchmarks/broadcast_bw benchmarks/broadcast_lat \
	benchmarks/allgather_bw benchmarks/allgather_lat \
	benchmarks/barrier_lat

benchmarks_allreduce_bw_SOURCES = %D%/main.c
benchmarks_allreduce_bw_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_allreduce -DBENCH_MODE=bench_bw
benchmarks_allreduce_bw_LDADD = libbench.la libcoll.la

benchmarks_allreduce_lat_SOURCES = %D%/main.c
benchmarks_allreduce_lat_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_allreduce -DBENCH_MODE=bench_lat
benchmarks_allreduce_lat_LDADD = libbench.la libcoll.la

benchmarks_broadcast_bw_SOURCES = %D%/main.c
benchmarks_broadcast_bw_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_broadcast -DBENCH_MODE=bench_bw
benchmarks_broadcast_bw_LDADD = libbench.la libcoll.la

benchmarks_broadcast_lat_SOURCES = %D%/main.c
benchmarks_broadcast_lat_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_broadcast -DBENCH_MODE=bench_lat
benchmarks_broadcast_lat_LDADD = libbench.la libcoll.la

benchmarks_allgather_bw_SOURCES = %D%/main.c
benchmarks_allgather_bw_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_allgather -DBENCH_MODE=bench_bw
benchmarks_allgather_bw_LDADD = libbench.la libcoll.la

benchmarks_allgather_lat_SOURCES = %D%/main.c
benchmarks_allgather_lat_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_allgather -DBENCH_MODE=bench_lat
benchmarks_allgather_lat_LDADD = libbench.la libcoll.la

benchmarks_barrier_lat_SOURCES = %D%/main.c
benchmarks_barrier_lat_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_OP=bench_barrier -DBENCH_MODE=bench_lat
benchmarks_barrier_lat_LDADD = libbench.la libcoll.la
include %D%/plan/local.mk
