/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernel.cu - a computation for operations to hide behind: a chain of
 * multiplications in registers, so that the memory is left to the operation. */
#include <stddef.h>
#include <stdint.h>

/* Do `work` multiplications in each thread, and write the results to len bytes at
 * out. */
extern "C" __global__ void __launch_bounds__(256)
    bench_compute(void *out, size_t len, uint64_t work)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float x = 1.0f + (float)threadIdx.x;

    for (uint64_t n = 0; n < work; n++)
        x = x * 0.999999f + 1e-6f;
    if (i < len / sizeof(float))
        ((float *)out)[i] = x;
}
