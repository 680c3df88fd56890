/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_no_kernel.c - replaces bench_kernel.cu if configure found no nvcc. */
#include "benchmarks/bench.h"

const unsigned char bench_kernel_image[] = {0};
