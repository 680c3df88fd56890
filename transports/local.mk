libcore_la_SOURCES += %D%/transport.h
