/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_shim.h - as much of CUDA C++ as lib/device/cuda_kernels.cu uses, for a
 * host's compiler.
 *
 * Blocks and threads are a loop (kernels.cc): so this fits kernels whose threads
 * do not wait for each other.  Vectors are aligned as a device wants them, so
 * that the sanitizers find what a device would refuse.
 */
#ifndef COLL_TESTS_CUDA_SHIM_H
#define COLL_TESTS_CUDA_SHIM_H

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    uint4 v = {x, y, z, w};

    return v;
}

struct fake_index {
    unsigned x;
};

/* Of the thread that is being played. */
static thread_local fake_index threadIdx, blockIdx, blockDim, gridDim;

#endif
