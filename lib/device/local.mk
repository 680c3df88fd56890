libcore_la_SOURCES += %D%/copy.c %D%/copy.h %D%/device.h %D%/kernel.h %D%/host.c %D%/list.c
