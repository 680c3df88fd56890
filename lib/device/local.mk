libcore_la_SOURCES += %D%/device.h %D%/host.c %D%/list.c
