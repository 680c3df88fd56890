libcore_la_SOURCES += \
	%D%/cma.c \
	%D%/cma.h \
	%D%/list.c \
	%D%/segment.c %D%/segment.h \
	%D%/self.c \
	%D%/shm.c %D%/shm.h \
	%D%/shm_area.c \
	%D%/shm_bell.c \
	%D%/shm_in.c \
	%D%/shm_out.c \
	%D%/shm_segment.c \
	%D%/transport.h \
	%D%/ucx.c \
	%D%/ucx_context.c \
	%D%/ucx_link.c \
	%D%/ucx_open.c \
	%D%/ucx.h \
	%D%/ucx_price.c %D%/ucx_price.h \
	%D%/ucx_peer.c \
	%D%/ucx_recv.c \
	%D%/ucx_room.c \
	%D%/ucx_send.c \
	%D%/ucx_worker.c
