libcore_la_SOURCES += %D%/device.h
