libcore_la_SOURCES += \
	%D%/cost.c \
	%D%/select.c %D%/select.h \
	%D%/tune.c %D%/tune.h
