# what this machine is made of
libcore_la_SOURCES += \
	%D%/carrier.c %D%/carrier.h \
	%D%/gpu.c \
	%D%/gpus.c %D%/gpus.h \
	%D%/gpus_read.c \
	%D%/hwloc.c %D%/hwloc_int.h \
	%D%/hwloc_gpus.c \
	%D%/hwloc_io.c \
	%D%/inside.c %D%/inside.h \
	%D%/topo_cache.c \
	%D%/machine.h \
	%D%/nics.c \
	%D%/part.c \
	%D%/port.c \
	%D%/peer.h \
	%D%/quota.c %D%/quota.h \
	%D%/rails.c %D%/rails.h \
	%D%/spare.c \
	%D%/render.c \
	%D%/topo.c \
	%D%/topo.h \
	%D%/probe.c \
	%D%/verbs.c \
	%D%/within.c
