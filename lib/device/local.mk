libcore_la_SOURCES += \
	%D%/area.c %D%/area.h \
	%D%/area_map.c \
	%D%/copy.c %D%/copy.h \
	%D%/device.h \
	%D%/host.c \
	%D%/kernel.h \
	%D%/list.c
