libcore_la_SOURCES += %D%/topo.h
