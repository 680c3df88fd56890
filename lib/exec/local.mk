libcore_la_SOURCES += \
	%D%/exec.c %D%/exec.h \
	%D%/joined.c %D%/lanes.c %D%/listed.c \
	%D%/planned.c %D%/prog.c %D%/prog.h \
	%D%/queued.c \
	%D%/sleep.c %D%/sleep.h \
	%D%/wait.c %D%/wait.h
