libcore_la_SOURCES += \
	%D%/region.c %D%/region.h \
	%D%/region_map.c \
	%D%/copy.c %D%/copy.h \
	%D%/device.h \
	%D%/host.c \
	%D%/kernel.h \
	%D%/list.c \
	%D%/process.c %D%/process.h
# reduction kernels, once per instruction set
libcore_la_SOURCES += %D%/reduce.c %D%/reduce.h %D%/reduce_kernels.h \
	%D%/arith.h %D%/arith_two.h %D%/simd.h \
	%D%/reduce_base.c %D%/reduce_avx2.c %D%/reduce_avx512.c

# Device memory of CUDA, where configure found its headers; the kernels where it
# found nvcc as well.
EXTRA_DIST += \
	%D%/cuda.c %D%/cuda.h \
	%D%/cuda_buffer.c \
	%D%/cuda_driver.c %D%/cuda_driver.h \
	%D%/cuda_entries.h \
	%D%/cuda_flag.c \
	%D%/cuda_held.c %D%/cuda_held.h \
	%D%/cuda_home.c \
	%D%/cuda_image.sh \
	%D%/cuda_kernels.cu %D%/cuda_kernels.h \
	%D%/cuda_launch.c \
	%D%/cuda_graph.c %D%/cuda_ops.c \
	%D%/cuda_near.c \
	%D%/cuda_no_image.c \
	%D%/cuda_number.cuh \
	%D%/cuda_ops.cuh \
	%D%/cuda_plan.c %D%/cuda_plan.cuh %D%/cuda_plan.h \
	%D%/cuda_plan_host.h \
	%D%/cuda_share.c \
	%D%/cuda_stage.c %D%/cuda_stage.h \
	%D%/cuda_stream.c %D%/cuda_stream.h \
	%D%/cuda_table.c \
	%D%/cuda_walk.cuh
if HAVE_CUDA
noinst_LTLIBRARIES += libcudevice.la
libcore_la_LIBADD += libcudevice.la
libcudevice_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
libcudevice_la_SOURCES = %D%/cuda.c %D%/cuda.h \
	%D%/cuda_buffer.c \
	%D%/cuda_driver.c %D%/cuda_driver.h \
	%D%/cuda_flag.c \
	%D%/cuda_held.c %D%/cuda_held.h \
	%D%/cuda_home.c \
	%D%/cuda_kernels.h \
	%D%/cuda_launch.c \
	%D%/cuda_graph.c %D%/cuda_ops.c \
	%D%/cuda_near.c \
	%D%/cuda_plan.c %D%/cuda_plan.h %D%/cuda_plan_host.h \
	%D%/cuda_share.c \
	%D%/cuda_stage.c %D%/cuda_stage.h \
	%D%/cuda_stream.c %D%/cuda_stream.h \
	%D%/cuda_table.c
if HAVE_NVCC
nodist_libcudevice_la_SOURCES = %D%/cuda_image.c
CLEANFILES += %D%/cuda_image.c
%D%/cuda_image.c: %D%/cuda_image.sh %D%/cuda_kernels.cu %D%/cuda_kernels.h \
		%D%/cuda_entries.h %D%/cuda_number.cuh %D%/cuda_ops.cuh \
		%D%/cuda_plan.cuh %D%/cuda_plan.h %D%/cuda_walk.cuh \
		lib/device/arith.h lib/type/half.h
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	    $(SHELL) $(top_srcdir)/%D%/cuda_image.sh $(NVCC) $@
else
libcudevice_la_SOURCES += %D%/cuda_no_image.c
endif
endif
