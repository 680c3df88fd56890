/* SPDX-License-Identifier: BSD-3-Clause */
/* foreign.h - how another library puts work of its own into streams of the fake CUDA
 * driver, as cuDNN and cuBLAS launch kernels of theirs (tests/fake_cudnn).
 *
 * The work runs in the stream's turn, or at each launch of the graph that the stream
 * captures.  What it needs is copied at the call; device memory is named by spans, which
 * the driver checks just before the work runs.
 */
#ifndef COLL_TESTS_FAKE_FOREIGN_H
#define COLL_TESTS_FAKE_FOREIGN_H

#include <cuda.h>
#include <stddef.h>

/* Bytes of device memory; len 0: there are none.  align: of `at`, or a device would fault;
 * a power of two. */
struct fake_cuda_span {
    CUdeviceptr at;
    size_t len, align;
};

enum { FAKE_CUDA_SPANS = 6 };

struct fake_cuda_work {
    const char *entry; /* which the caller has called; for FAKE_CUDA_FAULT */
    struct fake_cuda_span spans[FAKE_CUDA_SPANS];
    const void *args;
    size_t args_len;

    /* views: where this process finds each span, NULL for none; seed: a random number, 0
     * where random orders are off. */
    void (*run)(void *const *views, const void *args, unsigned seed);
};

/* Put work into a stream, which has to be of this context: else INVALID_HANDLE. */
CUresult fake_cuda_put(CUcontext ctx, CUstream stream,
                       const struct fake_cuda_work *work);

/* Ask whether the current context may allocate now, as cuMemAlloc would: a capture may
 * forbid it, and is over then. */
CUresult fake_cuda_may_allocate(const char *entry, CUcontext *ctx);

#endif
