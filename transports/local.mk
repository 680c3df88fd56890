libcore_la_SOURCES += \
	%D%/cma.c \
	%D%/cma.h \
	%D%/list.c \
	%D%/list.h \
	%D%/segment.c %D%/segment.h \
	%D%/price.c %D%/price.h \
	%D%/self.c \
	%D%/shm.c %D%/shm.h \
	%D%/shm_region.c \
	%D%/shm_bell.c \
	%D%/shm_in.c \
	%D%/shm_out.c \
	%D%/shm_segment.c \
	%D%/stream.c %D%/stream.h \
	%D%/tcp.c %D%/tcp.h \
	%D%/tcp_call.c \
	%D%/tcp_conn.c \
	%D%/tcp_open.c \
	%D%/tcp_recv.c \
	%D%/tcp_seal.c \
	%D%/tcp_send.c \
	%D%/tcp_share.c \
	%D%/transport.h \
	%D%/ucx.c \
	%D%/ucx_context.c \
	%D%/ucx_entries.h \
	%D%/ucx_link.c \
	%D%/ucx_load.c \
	%D%/ucx_open.c \
	%D%/ucx.h \
	%D%/ucx_price.c %D%/ucx_price.h \
	%D%/ucx_peer.c \
	%D%/ucx_recv.c \
	%D%/ucx_limits.c \
	%D%/ucx_send.c \
	%D%/ucx_worker.c

# Messages between streams of GPUs, where configure found CUDA's headers.
EXTRA_DIST += \
	%D%/cuda_ipc.c %D%/cuda_ipc.h %D%/cuda_ipc_registration.c \
	%D%/cuda_ipc_close.c %D%/cuda_ipc_host.c \
	%D%/cuda_ipc_kernel.c %D%/cuda_ipc_map.c \
	%D%/cuda_ipc_open.c %D%/cuda_ipc_shared.c \
	%D%/proxy.c %D%/proxy.h %D%/proxy_lane.c %D%/proxy_run.c %D%/proxy_work.c
if HAVE_CUDA
noinst_LTLIBRARIES += libstream.la
libcore_la_LIBADD += libstream.la
libstream_la_SOURCES = %D%/cuda_ipc.c %D%/cuda_ipc.h %D%/cuda_ipc_registration.c \
	%D%/cuda_ipc_close.c %D%/cuda_ipc_host.c \
	%D%/cuda_ipc_kernel.c %D%/cuda_ipc_map.c \
	%D%/cuda_ipc_open.c %D%/cuda_ipc_shared.c \
	%D%/proxy.c %D%/proxy.h %D%/proxy_lane.c %D%/proxy_run.c %D%/proxy_work.c
endif
