/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_no_kernel.c - in place of bench_kernel.cu, where configure found no nvcc. */
#include "benchmarks/bench.h"

const unsigned char bench_kernel_image[] = {0};
