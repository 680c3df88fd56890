libcore_la_SOURCES += %D%/status.c %D%/topo.c
