libcore_la_SOURCES += %D%/boot.h %D%/ctrl.h
