/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.c - the CUDA device: its memory; cuda_ops.c has the table of its streams. */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"

static int cuda_usable(char *why, size_t len)
{
    return coll__cuda_driver(why, len) ? COLL_OK : COLL_ERR_UNSUPPORTED;
}

/* ---- scratch ------------------------------------------------------------------- */

/* Allocate in the current context; in that of the first GPU if there is none. */
static CUresult alloc_somewhere(const struct coll__cuda *cuda, size_t len,
                                CUdeviceptr *at)
{
    CUcontext ctx = NULL;
    CUresult rc = cuda->cuCtxGetCurrent(&ctx);

    if (rc || ctx)
        return rc ? rc : cuda->cuMemAlloc(at, len);
    rc = cuda->cuDevicePrimaryCtxRetain(&ctx, 0);
    if (rc)
        return rc;
    rc = cuda->cuCtxPushCurrent(ctx);
    if (!rc) {
        rc = cuda->cuMemAlloc(at, len);
        cuda->cuCtxPopCurrent(&ctx);
    }
    if (rc)
        cuda->cuDevicePrimaryCtxRelease(0); /* on success the context is kept for ever */
    return rc;
}

/* The relaxed mode keeps the allocation out of captures that are under way. */
static void *cuda_alloc(size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr at = 0;
    int status;

    if (!cuda)
        return NULL;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    status = coll__cuda_status(alloc_somewhere(cuda, len ? len : 1, &at),
                               "cuMemAlloc");
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return status ? NULL : (void *)at;
}

/* The driver waits here for the context's streams. */
static void cuda_free(void *ptr, size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);

    (void)len;
    if (cuda && ptr)
        coll__cuda_status(cuda->cuMemFree((CUdeviceptr)ptr), "cuMemFree");
}

static void cuda_copy(void *dst, const void *src, size_t len, void *stream)
{
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = dst,
                              .src = src,
                              .len = len,
                              .stream = stream};

    coll__cuda_enqueue(&work); /* an error is logged */
}

/* No host function works on this memory: all steps go into a stream. */
static coll__reduce_fn *no_reduce(enum coll_type type, enum coll_op op)
{
    (void)type, (void)op;
    return NULL;
}

static coll__scale_fn *no_scale(enum coll_type type)
{
    (void)type;
    return NULL;
}

static coll__multiply_fn *no_multiply(enum coll_type type)
{
    (void)type;
    return NULL;
}

const struct coll__device coll__device_cuda = {
    .name = "cuda",
    .what = "memory of NVIDIA GPUs, worked on by their streams",
    .usable = cuda_usable,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .copy_past = cuda_copy,
    .reduce = no_reduce,
    .scale = no_scale,
    .multiply = no_multiply,
    .buffers = &coll__cuda_buffers,
    .streams = &coll__cuda_streams,
};
