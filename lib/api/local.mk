libcore_la_SOURCES += %D%/status.c
