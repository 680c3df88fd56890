/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_kernels.cu - the kernels that work on device memory, one entry each.
 *
 * All threads of the grid share the work, for any number of blocks; so the caller chooses
 * how many multiprocessors it uses (coll__cuda_blocks()).  A block has COLL__CUDA_THREADS
 * threads at most.  If `next` is not NULL, it gets the result too: so data that are
 * received, reduced and forwarded are read only once.  cuda_entries.h has the names.
 */
#include "lib/device/cuda_entries.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_plan.cuh"

#define KERNEL                                                                 \
    extern "C" __global__ void __launch_bounds__(                              \
        COLL__CUDA_THREADS, COLL__CUDA_BLOCKS_A_PROCESSOR)

DEVICE struct coll::team whole_grid()
{
    struct coll::team team = {(size_t)blockIdx.x * blockDim.x + threadIdx.x,
                              (size_t)gridDim.x * blockDim.x};

    return team;
}

KERNEL coll_copy(void *dst, void *next, const void *src, size_t len)
{
    coll::change(coll::same(), whole_grid(), dst, next, src, len);
}

#define REDUCE(op, kind)                                                       \
    KERNEL coll_##op##_##kind(void *dst, void *next, const void *a,            \
                              const void *b, size_t len)                       \
    {                                                                          \
        coll::reduce<coll::op<coll::kind>>(whole_grid(), dst, next, a, b,      \
                                           len);                               \
    }

#define MULTIPLY(op, kind)                                                     \
    KERNEL coll_##op##_##kind(void *dst, const void *src, size_t len,          \
                              uint64_t factor)                                 \
    {                                                                          \
        coll::change(coll::multiply<coll::kind>(factor), whole_grid(), dst,    \
                     NULL, src, len);                                          \
    }

#define SCALE(op, kind)                                                        \
    KERNEL coll_##op##_##kind(void *dst, const void *src, size_t len,          \
                              int n_ranks, uint64_t magic)                     \
    {                                                                          \
        coll::divide<coll::kind>(whole_grid(), dst, src, len, n_ranks, magic); \
    }

COLL__CUDA_REDUCE_MAP(REDUCE)
COLL__CUDA_MULTIPLY_MAP(MULTIPLY)
COLL__CUDA_SCALE_MAP(SCALE)

/* A whole plan: cuda_plan.h. */
KERNEL coll_plan(const struct coll__cuda_step *steps, uint32_t n_steps,
                 uint32_t *state, const uint32_t *stop, void *in, void *out,
                 void *tmp)
{
    coll::crew crew = {
        coll::reach<uint32_t>((uint64_t)state,
                              4 * COLL__CUDA_STATE_WORDS(n_steps)),
        stop ? coll::reach<const uint32_t>((uint64_t)stop, 4) : NULL};
    coll::bases bases = {{(uint64_t)in, (uint64_t)out, (uint64_t)tmp}};

    coll::run_plan(crew,
                   coll::reach<const struct coll__cuda_step>(
                       (uint64_t)steps, n_steps * sizeof(*steps)),
                   n_steps, bases);
}
