libcore_la_SOURCES += \
	%D%/area.c %D%/area.h \
	%D%/area_map.c \
	%D%/copy.c %D%/copy.h \
	%D%/device.h \
	%D%/host.c \
	%D%/kernel.h \
	%D%/list.c

# The driver's table and the kernels for device memory.  Nothing in the library uses
# them yet, so they are a library of their own, which tests link: what the library is
# will take them from here.
EXTRA_DIST += \
	%D%/cuda.c %D%/cuda.h \
	%D%/cuda_driver.c %D%/cuda_driver.h \
	%D%/cuda_entries.h \
	%D%/cuda_flag.c \
	%D%/cuda_image.sh \
	%D%/cuda_kernels.cu %D%/cuda_kernels.h \
	%D%/cuda_launch.c \
	%D%/cuda_number.cuh \
	%D%/cuda_ops.cuh \
	%D%/cuda_share.c \
	%D%/cuda_table.c \
	%D%/cuda_walk.cuh
if HAVE_CUDA
check_LTLIBRARIES += libcudriver.la
libcudriver_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
libcudriver_la_SOURCES = %D%/cuda_driver.c %D%/cuda_driver.h
check_LTLIBRARIES += libcudevice.la
libcudevice_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
libcudevice_la_SOURCES = %D%/cuda.c %D%/cuda.h %D%/cuda_flag.c \
	%D%/cuda_launch.c %D%/cuda_share.c
endif
if HAVE_NVCC
check_LTLIBRARIES += libcukernels.la
libcukernels_la_SOURCES = %D%/cuda_table.c %D%/cuda_kernels.h
nodist_libcukernels_la_SOURCES = %D%/cuda_image.c
CLEANFILES += %D%/cuda_image.c
%D%/cuda_image.c: %D%/cuda_image.sh %D%/cuda_kernels.cu %D%/cuda_kernels.h \
		%D%/cuda_entries.h %D%/cuda_number.cuh %D%/cuda_ops.cuh \
		%D%/cuda_walk.cuh lib/exec/number.h
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	    $(SHELL) $(top_srcdir)/%D%/cuda_image.sh $(NVCC) $@
endif
