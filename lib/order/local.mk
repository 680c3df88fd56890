libcore_la_SOURCES += \
	%D%/direct_read.c \
	%D%/order.h \
	%D%/stream_plan.c
