libcore_la_SOURCES += \
	%D%/aside.c \
	%D%/ask.c \
	%D%/buffers.c \
	%D%/cache.c %D%/cache.h \
	%D%/check.c \
	%D%/coll.c \
	%D%/comm.c %D%/comm.h \
	%D%/compare.c \
	%D%/engine.c %D%/engine.h \
	%D%/fail.c \
	%D%/family.c %D%/family.h \
	%D%/feature.c \
	%D%/flight.c %D%/flight.h \
	%D%/group.c \
	%D%/leave.c %D%/leave.h \
	%D%/links.c \
	%D%/measure.c \
	%D%/mem_stats.c \
	%D%/members.c \
	%D%/memory.c \
	%D%/op.c %D%/op.h \
	%D%/params.c \
	%D%/parts.c %D%/parts.h \
	%D%/prices.c %D%/prices.h \
	%D%/progress.c \
	%D%/register.c \
	%D%/request.c \
	%D%/scratch.c %D%/scratch.h \
	%D%/split.c \
	%D%/stream.h \
	%D%/thread.c \
	%D%/topo.c \
	%D%/view.c \
	%D%/way.c %D%/way.h
if HAVE_CUDA
libcore_la_SOURCES += %D%/cut.c %D%/cut.h %D%/staged.c %D%/staged.h \
	%D%/staged_enqueue.c %D%/captured.c %D%/captured.h %D%/stream.c \
	%D%/queued.c %D%/queued.h %D%/gpus.c %D%/gpus.h %D%/levels.c %D%/levels.h \
	%D%/queued_areas.c %D%/queued_messages.c \
	%D%/stream_check.c %D%/stream_check.h \
	%D%/stream_scratch.c %D%/stream_scratch.h %D%/watch.c %D%/watch.h
EXTRA_DIST += %D%/stream_none.c
else
libcore_la_SOURCES += %D%/stream_none.c
EXTRA_DIST += %D%/cut.c %D%/cut.h %D%/staged.c %D%/staged.h \
	%D%/staged_enqueue.c %D%/captured.c %D%/captured.h %D%/stream.c \
	%D%/queued.c %D%/queued.h %D%/gpus.c %D%/gpus.h %D%/levels.c %D%/levels.h \
	%D%/queued_areas.c %D%/queued_messages.c \
	%D%/stream_check.c %D%/stream_check.h \
	%D%/stream_scratch.c %D%/stream_scratch.h %D%/watch.c %D%/watch.h
endif
