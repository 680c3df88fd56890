/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_no_image.c - an empty image instead of the kernels, for builds without nvcc. */
#include "lib/device/cuda_kernels.h"

const unsigned char coll__cuda_image[] = {0};
