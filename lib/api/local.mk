libcore_la_SOURCES += \
	%D%/check.c \
	%D%/coll.c \
	%D%/comm.c %D%/comm.h \
	%D%/fail.c \
	%D%/feature.c \
	%D%/links.c \
	%D%/params.c \
	%D%/request.c \
	%D%/split.c \
	%D%/status.c \
	%D%/topo.c
