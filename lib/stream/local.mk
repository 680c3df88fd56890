# calls for streams of GPUs, where configure found CUDA's headers
stream_sources = \
	%D%/attach.c %D%/attach.h \
	%D%/calls.c %D%/calls.h \
	%D%/carry.c %D%/carry.h \
	%D%/check_calls.c %D%/check_calls.h \
	%D%/compare.c %D%/compare.h \
	%D%/enroll.c \
	%D%/join.c \
	%D%/gpu_view.c %D%/gpu_view.h \
	%D%/messages.c \
	%D%/programs.c %D%/programs.h \
	%D%/registered.c \
	%D%/stream_program.c %D%/stream_program.h \
	%D%/stream_scratch.c %D%/stream_scratch.h \
	%D%/watch.c %D%/watch.h
if HAVE_CUDA
libcore_la_SOURCES += $(stream_sources)
else
EXTRA_DIST += $(stream_sources)
endif
