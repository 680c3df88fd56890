libcore_la_SOURCES += \
	%D%/exec.c %D%/exec.h %D%/routes.h \
	%D%/fused.c %D%/lanes.c %D%/listed.c \
	%D%/kernel_program.c %D%/prog.c %D%/prog.h \
	%D%/stream_engine.c \
	%D%/sleep.c %D%/sleep.h \
	%D%/wait.c %D%/wait.h
