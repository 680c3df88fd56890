# One driver, one file an operation; each program is a pair of an operation and
# a mode.  They link libcoll.la only.
noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = \
	%D%/bench.h %D%/bench.c %D%/bench_args.c \
	%D%/bench_beside.c %D%/bench_buffers.c \
	%D%/bench_data.c %D%/bench_factor.c %D%/bench_memory.c %D%/bench_mode.c %D%/bench_overlap.c %D%/bench_report.c \
	%D%/bench_run.h %D%/bench_time.c %D%/bench_turns.c %D%/bench_window.c \
	%D%/op_allgather.c \
	%D%/op_allreduce.c \
	%D%/op_alltoall.c \
	%D%/op_barrier.c \
	%D%/op_broadcast.c \
	%D%/op_gather.c \
	%D%/op_p2p.c \
	%D%/op_reduce.c \
	%D%/op_reduce_scatter.c \
	%D%/op_scan.c \
	%D%/op_scatter.c

libbench_la_LIBADD = libbenchdevice.la libprogram.la libtable.la

# where buffers lie but on the host; benchmarks/rivals needs nothing else of these
noinst_LTLIBRARIES += libbenchdevice.la
libbenchdevice_la_SOURCES = %D%/bench_device.c
libbenchdevice_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
if HAVE_CUDA
libbenchdevice_la_SOURCES += %D%/bench_cuda.c
libbenchdevice_la_LIBADD = libcudafind.la
if HAVE_NVCC
nodist_libbenchdevice_la_SOURCES = %D%/bench_kernel.c
CLEANFILES += %D%/bench_kernel.c
%D%/bench_kernel.c: lib/device/cuda_image.sh %D%/bench_kernel.cu
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	    $(SHELL) $(top_srcdir)/lib/device/cuda_image.sh $(NVCC) $@ \
	    $(top_srcdir)/%D%/bench_kernel.cu benchmarks/bench.h bench_kernel_image
else
libbenchdevice_la_SOURCES += %D%/bench_no_kernel.c
endif
endif
EXTRA_DIST += %D%/bench_cuda.c %D%/bench_kernel.cu %D%/bench_no_kernel.c

bin_PROGRAMS += \
	benchmarks/allreduce_bw \
	benchmarks/allreduce_lat \
	benchmarks/broadcast_bw \
	benchmarks/broadcast_lat \
	benchmarks/reduce_bw \
	benchmarks/reduce_lat \
	benchmarks/allgather_bw \
	benchmarks/allgather_lat \
	benchmarks/allgatherv_bw \
	benchmarks/allgatherv_lat \
	benchmarks/reduce_scatter_bw \
	benchmarks/reduce_scatter_lat \
	benchmarks/reduce_scatterv_bw \
	benchmarks/reduce_scatterv_lat \
	benchmarks/alltoall_bw \
	benchmarks/alltoall_lat \
	benchmarks/alltoallv_bw \
	benchmarks/alltoallv_lat \
	benchmarks/gather_bw \
	benchmarks/gather_lat \
	benchmarks/gatherv_bw \
	benchmarks/gatherv_lat \
	benchmarks/scatter_bw \
	benchmarks/scatter_lat \
	benchmarks/scatterv_bw \
	benchmarks/scatterv_lat \
	benchmarks/scan_bw \
	benchmarks/scan_lat \
	benchmarks/p2p_lat \
	benchmarks/p2p_bw \
	benchmarks/p2p_bibw \
	benchmarks/barrier_lat \
	benchmarks/allreduce_repro \
	benchmarks/overlap \
	benchmarks/shrink_latency

# of all programs that name nothing else
LDADD = libbench.la libcoll.la
bench_bw = $(AM_CPPFLAGS) -DBENCH_MODE=bench_bw
bench_lat = $(AM_CPPFLAGS) -DBENCH_MODE=bench_lat
bench_p2p_bw = $(AM_CPPFLAGS) -DBENCH_MODE=bench_p2p_bw
bench_p2p_bibw = $(AM_CPPFLAGS) -DBENCH_MODE=bench_p2p_bibw

benchmarks_allreduce_bw_SOURCES = %D%/main.c
benchmarks_allreduce_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_allreduce
benchmarks_allreduce_lat_SOURCES = %D%/main.c
benchmarks_allreduce_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_allreduce
benchmarks_broadcast_bw_SOURCES = %D%/main.c
benchmarks_broadcast_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_broadcast
benchmarks_broadcast_lat_SOURCES = %D%/main.c
benchmarks_broadcast_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_broadcast
benchmarks_reduce_bw_SOURCES = %D%/main.c
benchmarks_reduce_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_reduce
benchmarks_reduce_lat_SOURCES = %D%/main.c
benchmarks_reduce_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_reduce
benchmarks_allgather_bw_SOURCES = %D%/main.c
benchmarks_allgather_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_allgather
benchmarks_allgather_lat_SOURCES = %D%/main.c
benchmarks_allgather_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_allgather
benchmarks_allgatherv_bw_SOURCES = %D%/main.c
benchmarks_allgatherv_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_allgatherv
benchmarks_allgatherv_lat_SOURCES = %D%/main.c
benchmarks_allgatherv_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_allgatherv
benchmarks_reduce_scatter_bw_SOURCES = %D%/main.c
benchmarks_reduce_scatter_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_reduce_scatter
benchmarks_reduce_scatter_lat_SOURCES = %D%/main.c
benchmarks_reduce_scatter_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_reduce_scatter
benchmarks_reduce_scatterv_bw_SOURCES = %D%/main.c
benchmarks_reduce_scatterv_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_reduce_scatterv
benchmarks_reduce_scatterv_lat_SOURCES = %D%/main.c
benchmarks_reduce_scatterv_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_reduce_scatterv
benchmarks_alltoall_bw_SOURCES = %D%/main.c
benchmarks_alltoall_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_alltoall
benchmarks_alltoall_lat_SOURCES = %D%/main.c
benchmarks_alltoall_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_alltoall
benchmarks_alltoallv_bw_SOURCES = %D%/main.c
benchmarks_alltoallv_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_alltoallv
benchmarks_alltoallv_lat_SOURCES = %D%/main.c
benchmarks_alltoallv_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_alltoallv
benchmarks_gather_bw_SOURCES = %D%/main.c
benchmarks_gather_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_gather
benchmarks_gather_lat_SOURCES = %D%/main.c
benchmarks_gather_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_gather
benchmarks_gatherv_bw_SOURCES = %D%/main.c
benchmarks_gatherv_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_gatherv
benchmarks_gatherv_lat_SOURCES = %D%/main.c
benchmarks_gatherv_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_gatherv
benchmarks_scatter_bw_SOURCES = %D%/main.c
benchmarks_scatter_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_scatter
benchmarks_scatter_lat_SOURCES = %D%/main.c
benchmarks_scatter_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_scatter
benchmarks_scatterv_bw_SOURCES = %D%/main.c
benchmarks_scatterv_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_scatterv
benchmarks_scatterv_lat_SOURCES = %D%/main.c
benchmarks_scatterv_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_scatterv
benchmarks_scan_bw_SOURCES = %D%/main.c
benchmarks_scan_bw_CPPFLAGS = $(bench_bw) -DBENCH_OP=bench_scan
benchmarks_scan_lat_SOURCES = %D%/main.c
benchmarks_scan_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_scan
benchmarks_p2p_lat_SOURCES = %D%/main.c
benchmarks_p2p_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_p2p_ping
benchmarks_p2p_bw_SOURCES = %D%/main.c
benchmarks_p2p_bw_CPPFLAGS = $(bench_p2p_bw) -DBENCH_OP=bench_p2p_one
benchmarks_p2p_bibw_SOURCES = %D%/main.c
benchmarks_p2p_bibw_CPPFLAGS = $(bench_p2p_bibw) -DBENCH_OP=bench_p2p_both
benchmarks_barrier_lat_SOURCES = %D%/main.c
benchmarks_barrier_lat_CPPFLAGS = $(bench_lat) -DBENCH_OP=bench_barrier
benchmarks_allreduce_repro_SOURCES = %D%/allreduce_repro.c
benchmarks_overlap_SOURCES = %D%/overlap.c
benchmarks_shrink_latency_SOURCES = %D%/shrink_latency.c

EXTRA_DIST += %D%/NOTES.md %D%/horovod_step.py %D%/python_compare.py %D%/train_checkpoint.py %D%/train_compare \
	%D%/train_torch.py %D%/results

include %D%/plan/local.mk
include %D%/rivals/local.mk
