/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cc - the product's kernels and the benchmarks' one, compiled for the host,
 * and a table of them by name. */
#include "tests/fake_cuda/kernels.h"
#include "tests/fake_cuda/cuda_shim.h"
#include "benchmarks/bench_kernel.cu"
#include "lib/device/cuda_kernels.cu"

#include <cstring>

namespace
{
/* Where a parameter is in an array as cuLaunchKernel() takes it. */
template <typename T> T at(void **params, int i) { return *(T *)params[i]; }

typedef void *out;
typedef const void *in;

#define REDUCE_ENTRY(op, kind)                                                 \
    {"coll_" #op "_" #kind, "pnppl", [](void **p) {                            \
         coll_##op##_##kind(at<out>(p, 0), at<out>(p, 1), at<in>(p, 2),        \
                            at<in>(p, 3), at<size_t>(p, 4));                   \
     }},
#define MULTIPLY_ENTRY(op, kind)                                               \
    {"coll_" #op "_" #kind, "pplw", [](void **p) {                             \
         coll_##op##_##kind(at<out>(p, 0), at<in>(p, 1), at<size_t>(p, 2),     \
                            at<uint64_t>(p, 3));                               \
     }},
#define SCALE_ENTRY(op, kind)                                                  \
    {"coll_" #op "_" #kind, "ppluw", [](void **p) {                            \
         coll_##op##_##kind(at<out>(p, 0), at<in>(p, 1), at<size_t>(p, 2),     \
                            at<int>(p, 3), at<uint64_t>(p, 4));                \
     }},

const struct {
    const char *name, *params;
    void (*run)(void **params);
} entries[] = {{COLL__CUDA_PLAN, "auaaaaa",
                [](void **p) {
                    coll_plan(at<const coll__cuda_step *>(p, 0),
                              at<uint32_t>(p, 1), at<uint32_t *>(p, 2),
                              at<const uint32_t *>(p, 3), at<out>(p, 4),
                              at<out>(p, 5), at<out>(p, 6));
                }},
               {"coll_copy", "pnpl",
                [](void **p) {
                    coll_copy(at<out>(p, 0), at<out>(p, 1), at<in>(p, 2),
                              at<size_t>(p, 3));
                }},
               {"bench_compute", "plw",
                [](void **p) {
                    bench_compute(at<out>(p, 0), at<size_t>(p, 1),
                                  at<uint64_t>(p, 2));
                }},
               COLL__CUDA_REDUCE_MAP(REDUCE_ENTRY)
                   COLL__CUDA_MULTIPLY_MAP(MULTIPLY_ENTRY)
                       COLL__CUDA_SCALE_MAP(SCALE_ENTRY)};
} // namespace

int fake_kernel_run(const char *entry, unsigned blocks, unsigned threads,
                    void **params, int is_backwards)
{
    unsigned all = blocks * threads;

    gridDim.x = blocks;
    blockDim.x = threads;
    for (auto &e : entries) {
        if (std::strcmp(e.name, entry))
            continue;
        for (unsigned i = 0; i < all; i++) {
            unsigned thread = is_backwards ? all - 1 - i : i;

            blockIdx.x = thread / threads;
            threadIdx.x = thread % threads;
            e.run(params);
        }
        return 0;
    }
    return -1;
}

int fake_kernel_thread(const char *entry, void **params, unsigned blocks,
                       unsigned block, unsigned threads, unsigned thread)
{
    gridDim.x = blocks;
    blockDim.x = threads;
    blockIdx.x = block;
    threadIdx.x = thread;
    for (auto &e : entries)
        if (!std::strcmp(e.name, entry)) {
            e.run(params);
            return 0;
        }
    return -1;
}

const char *fake_kernel_params(const char *entry)
{
    for (auto &e : entries)
        if (!std::strcmp(e.name, entry))
            return e.params;
    return nullptr;
}
