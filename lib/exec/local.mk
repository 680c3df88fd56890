libcore_la_SOURCES += \
	%D%/exec.c %D%/exec.h \
	%D%/joined.c %D%/lanes.c %D%/listed.c \
	%D%/planned.c %D%/prog.c %D%/prog.h \
	%D%/queued.c \
	%D%/sleep.c %D%/sleep.h \
	%D%/wait.c %D%/wait.h
# reduction kernels, once per instruction set
libcore_la_SOURCES += %D%/reduce.c %D%/reduce.h %D%/reduce_kernels.h \
	%D%/number.h %D%/simd.h \
	%D%/reduce_base.c %D%/reduce_avx2.c %D%/reduce_avx512.c
