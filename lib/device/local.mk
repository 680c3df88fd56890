libcore_la_SOURCES += %D%/device.h %D%/kernel.h %D%/host.c %D%/list.c
