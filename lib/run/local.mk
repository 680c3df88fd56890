libcore_la_SOURCES += \
	%D%/any_order.c %D%/any_order.h \
	%D%/args.c %D%/args.h \
	%D%/buffers.c \
	%D%/cache.c %D%/cache.h \
	%D%/group.c %D%/group.h \
	%D%/launch.c \
	%D%/notice.c %D%/notice.h \
	%D%/own_op.c %D%/own_op.h \
	%D%/owner.c %D%/owner.h \
	%D%/parts.c %D%/parts.h \
	%D%/progress.c \
	%D%/request.c %D%/request.h \
	%D%/run.c %D%/run.h \
	%D%/scratch.c %D%/scratch.h \
	%D%/stream_calls.h \
	%D%/tagged.c %D%/tagged.h \
	%D%/thread.c
