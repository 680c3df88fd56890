libcore_la_SOURCES += \
	%D%/buffers.c \
	%D%/cache.c \
	%D%/check.c \
	%D%/coll.c \
	%D%/comm.c %D%/comm.h \
	%D%/fail.c \
	%D%/feature.c \
	%D%/group.c \
	%D%/links.c \
	%D%/memory.c \
	%D%/params.c \
	%D%/progress.c \
	%D%/request.c \
	%D%/split.c \
	%D%/status.c \
	%D%/topo.c \
	%D%/view.c
