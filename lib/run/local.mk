libcore_la_SOURCES += \
	%D%/args.c \
	%D%/buffers.c \
	%D%/cache.c %D%/cache.h \
	%D%/group.c \
	%D%/owner.c %D%/owner.h \
	%D%/parts.c %D%/parts.h \
	%D%/progress.c \
	%D%/request.c \
	%D%/scratch.c %D%/scratch.h \
	%D%/thread.c
