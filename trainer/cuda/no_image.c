/* SPDX-License-Identifier: BSD-3-Clause */
/* no_image.c - an empty image instead of the kernels, for builds without nvcc. */
#include "trainer/cuda/kernels.h"

const unsigned char train_cuda_image[] = {0};
