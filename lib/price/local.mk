libcore_la_SOURCES += \
	%D%/select.c %D%/select.h \
	%D%/tune.c %D%/tune.h
