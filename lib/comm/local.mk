libcore_la_SOURCES += \
	%D%/algorithm_id.c %D%/algorithm_id.h \
	%D%/attachment.c %D%/attachment.h \
	%D%/check_params.c \
	%D%/comm.h \
	%D%/comm_view.c \
	%D%/copies.c %D%/copies.h \
	%D%/create.c \
	%D%/deferred.c \
	%D%/destroy.c %D%/destroy.h \
	%D%/fail.c \
	%D%/history_signal.c %D%/history_signal.h \
	%D%/links.c \
	%D%/measure.c \
	%D%/members.c \
	%D%/prices.c %D%/prices.h \
	%D%/split.c \
	%D%/stall.c %D%/stall.h
