# SPDX-License-Identifier: BSD-3-Clause

# what the trainer runs on GPUs; the kernels where configure found nvcc as well
EXTRA_DIST += %D%/kernels.h %D%/kernels.cu %D%/no_image.c %D%/span.cuh \
	$(train_cuh)
train_cuh = %D%/bias.cuh %D%/dropout.cuh %D%/fold.cuh %D%/gather.cuh \
	%D%/mean.cuh %D%/norm.cuh %D%/optim.cuh %D%/paint.cuh %D%/pool.cuh %D%/softmax.cuh \
	%D%/vector.cuh %D%/weights.cuh
if HAVE_CUDA
noinst_LTLIBRARIES += libtrainimage.la
libtrainimage_la_SOURCES = %D%/kernels.h
if HAVE_NVCC
nodist_libtrainimage_la_SOURCES = %D%/cuda_image.c
CLEANFILES += %D%/cuda_image.c
%D%/cuda_image.c: lib/device/cuda_image.sh %D%/kernels.cu %D%/kernels.h \
		%D%/span.cuh $(train_cuh) lib/type/half.h trainer/data.h \
		trainer/layers.h trainer/rng.h trainer/synthetic_look.h
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	    $(SHELL) $(top_srcdir)/lib/device/cuda_image.sh $(NVCC) $@ \
	    $(top_srcdir)/%D%/kernels.cu trainer/cuda/kernels.h train_cuda_image
else
libtrainimage_la_SOURCES += %D%/no_image.c
endif
endif

# the device for them
if HAVE_ONEDNN
if HAVE_CUDNN
noinst_LTLIBRARIES += libtraincuda.la
libtraincuda_la_CFLAGS = $(AM_CFLAGS) -fno-math-errno $(CUDNN_CFLAGS)
libtraincuda_la_LIBADD = libtrainimage.la libcudafind.la -ldl -lm
libtraincuda_la_SOURCES = \
	%D%/compute.c %D%/compute.h \
	%D%/device.c \
	%D%/dnn.c %D%/dnn.h \
	%D%/dnn_conv.c %D%/dnn_conv.h \
	%D%/dnn_product.c %D%/dnn_product.h \
	%D%/gpu.c %D%/gpu.h \
	%D%/gpu_memory.c \
	%D%/graph.c \
	%D%/stamps.c \
	%D%/images.c \
	%D%/launch.c %D%/launch.h \
	%D%/layers_conv.c \
	%D%/layers_cuda.h \
	%D%/layers_dense.c \
	%D%/layers_dropout.c \
	%D%/layers_norm.c \
	%D%/layers_pool.c \
	%D%/step.c \
	%D%/sums.c %D%/sums.h
endif
endif
