# calls for streams of GPUs, where configure found CUDA's headers
stream_sources = \
	%D%/captured.c %D%/captured.h \
	%D%/check_calls.c %D%/check_calls.h \
	%D%/cut.c %D%/cut.h \
	%D%/gpu_view.c %D%/gpu_view.h \
	%D%/host_levels.c %D%/host_levels.h \
	%D%/messages.c \
	%D%/programs.c %D%/programs.h \
	%D%/registered.c \
	%D%/staged.c %D%/staged.h \
	%D%/staged_enqueue.c \
	%D%/calls.c %D%/calls.h \
	%D%/compare.c \
	%D%/stream_scratch.c %D%/stream_scratch.h \
	%D%/subcomms.c %D%/subcomms.h \
	%D%/watch.c %D%/watch.h
EXTRA_DIST += $(stream_sources) %D%/stream_none.c
if HAVE_CUDA
libcore_la_SOURCES += $(stream_sources)
else
libcore_la_SOURCES += %D%/stream_none.c %D%/compare.c %D%/subcomms.c
endif
