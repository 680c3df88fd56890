/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_shim.h - as much of CUDA C++ as lib/device/cuda_kernels.cu and
 * trainer/cuda/kernels.cu use, for a host's compiler.
 *
 * Blocks and threads are a loop (kernels.cc) where a kernel's threads do not wait for
 * each other, and threads of the host where they do (grid.h).  Vectors are aligned as
 * a device wants them, so that the sanitizers find what a device would refuse.
 */
#ifndef COLL_TESTS_CUDA_SHIM_H
#define COLL_TESTS_CUDA_SHIM_H

#include "tests/fake_cuda/grid.h"

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
inline thread_local fake_index threadIdx, blockIdx, blockDim, gridDim;

/* ---- threads that wait for each other ------------------------------------- */

static inline void __syncthreads() { fake_grid_sync(0); }
static inline int __syncthreads_or(int is_so) { return fake_grid_sync(is_so); }

/* ThreadSanitizer knows no fences: to it, the atomic operations below carry the order,
 * which on a device they do not. */
#ifdef __SANITIZE_THREAD__
static inline void __threadfence() {}
#else
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
static inline void __threadfence_system() { __threadfence(); }

static inline unsigned atomicAdd(unsigned *at, unsigned more)
{
    return __atomic_fetch_add(at, more, __ATOMIC_ACQ_REL);
}

static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    unsigned was = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &was, was >= most ? 0 : was + 1, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        continue;
    return was;
}

namespace coll
{
static inline uint32_t load_acquire(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline uint32_t load_relaxed(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void store_relaxed(uint32_t *at, uint32_t x)
{
    __atomic_store_n(at, x, __ATOMIC_RELAXED);
}

static inline void store_release(uint32_t *at, uint32_t x)
{
    __atomic_store_n(at, x, __ATOMIC_RELEASE);
}

template <typename T> static inline T *reach(uint64_t at, uint64_t len)
{
    return (T *)fake_grid_reach(at, len);
}

static inline void rest() { fake_grid_rest(); }
} // namespace coll

#endif
