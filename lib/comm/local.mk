libcore_la_SOURCES += \
	%D%/advice.c %D%/advice.h \
	%D%/algorithm_id.c %D%/algorithm_id.h \
	%D%/attachment.c %D%/attachment.h \
	%D%/awaited.h \
	%D%/check_params.c %D%/check_params.h \
	%D%/comm.h \
	%D%/comm_view.c %D%/comm_view.h \
	%D%/copies.c %D%/copies.h \
	%D%/create.c %D%/create.h %D%/idle.h \
	%D%/deferred.c \
	%D%/destroy.c %D%/destroy.h \
	%D%/diagnose.c %D%/diagnose.h \
	%D%/fail.c %D%/fail.h \
	%D%/links.c %D%/links.h \
	%D%/measure.c \
	%D%/members.c %D%/members.h \
	%D%/prices.c %D%/prices.h \
	%D%/records.c %D%/records.h \
	%D%/shrink.c %D%/shrink.h %D%/split.c %D%/split.h \
	%D%/stall.c %D%/stall.h
