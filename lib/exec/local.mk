libcore_la_SOURCES += \
	%D%/exec.c %D%/exec.h \
	%D%/wait.c %D%/wait.h
