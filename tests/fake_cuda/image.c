/* SPDX-License-Identifier: BSD-3-Clause */
/* image.c - the first word of fat binaries, for programs of a build without nvcc: the
 * fake driver has kernels of its own for it, and a real one refuses it. */
#include "lib/device/cuda_kernels.h"
#include "trainer/cuda/kernels.h"

const unsigned char coll__cuda_image[64] = {0x50, 0xed, 0x55, 0xba};
const unsigned char train_cuda_image[64] = {0x50, 0xed, 0x55, 0xba};
