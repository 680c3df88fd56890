/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_no_image.c - in place of the kernels, where configure found no nvcc. */
#include "lib/device/cuda_kernels.h"

const unsigned char coll__cuda_image[] = {0};
