/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cc - the product's kernels and the benchmarks' one, compiled for the host,
 * and a table of them by name. */
#include "tests/fake_cuda/kernels.h"
#include "tests/fake_cuda/cuda_shim.h"
#include "tests/fake_cuda/kernel_entry.h"
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
    {"coll_" #op "_" #kind, "pnppl",                                           \
     [](void **p) {                                                            \
         coll_##op##_##kind(at<out>(p, 0), at<out>(p, 1), at<in>(p, 2),        \
                            at<in>(p, 3), at<size_t>(p, 4));                   \
     },                                                                        \
     nullptr},
#define MULTIPLY_ENTRY(op, kind)                                               \
    {"coll_" #op "_" #kind, "pplw",                                            \
     [](void **p) {                                                            \
         coll_##op##_##kind(at<out>(p, 0), at<in>(p, 1), at<size_t>(p, 2),     \
                            at<uint64_t>(p, 3));                               \
     },                                                                        \
     nullptr},
#define SCALE_ENTRY(op, kind)                                                  \
    {"coll_" #op "_" #kind, "ppluw",                                           \
     [](void **p) {                                                            \
         coll_##op##_##kind(at<out>(p, 0), at<in>(p, 1), at<size_t>(p, 2),     \
                            at<int>(p, 3), at<uint64_t>(p, 4));                \
     },                                                                        \
     nullptr},

const fake_entry entries[] = {
    {COLL__CUDA_PLAN, "auaaaaa",
     [](void **p) {
         coll_plan(at<const coll__cuda_step *>(p, 0), at<uint32_t>(p, 1),
                   at<uint32_t *>(p, 2), at<const uint32_t *>(p, 3),
                   at<out>(p, 4), at<out>(p, 5), at<out>(p, 6));
     },
     nullptr},
    {"coll_copy", "pnpl",
     [](void **p) {
         coll_copy(at<out>(p, 0), at<out>(p, 1), at<in>(p, 2),
                   at<size_t>(p, 3));
     },
     nullptr},
    {"bench_compute", "plw",
     [](void **p) {
         bench_compute(at<out>(p, 0), at<size_t>(p, 1), at<uint64_t>(p, 2));
     },
     nullptr},
    COLL__CUDA_REDUCE_MAP(REDUCE_ENTRY) COLL__CUDA_MULTIPLY_MAP(MULTIPLY_ENTRY)
        COLL__CUDA_SCALE_MAP(SCALE_ENTRY)};

const fake_entry *find(const char *name)
{
    for (auto &e : entries)
        if (!std::strcmp(e.name, name))
            return &e;
    return fake_trainer_entry(name);
}
} // namespace

int fake_kernel_run(const char *entry, unsigned blocks, unsigned threads,
                    void **params, int is_backwards)
{
    const fake_entry *e = find(entry);
    unsigned all = blocks * threads;

    if (!e)
        return -1;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (unsigned i = 0; i < all; i++) {
        unsigned thread = is_backwards ? all - 1 - i : i;

        blockIdx.x = thread / threads;
        threadIdx.x = thread % threads;
        e->run(params);
    }
    return 0;
}

int fake_kernel_thread(const char *entry, void **params, unsigned blocks,
                       unsigned block, unsigned threads, unsigned thread)
{
    const fake_entry *e = find(entry);

    if (!e)
        return -1;
    gridDim.x = blocks;
    blockDim.x = threads;
    blockIdx.x = block;
    threadIdx.x = thread;
    e->run(params);
    return 0;
}

const char *fake_kernel_params(const char *entry)
{
    const fake_entry *e = find(entry);

    return e ? e->params : nullptr;
}

unsigned fake_kernel_item(const char *entry, int i)
{
    return find(entry)->items[i];
}
