/* SPDX-License-Identifier: BSD-3-Clause */
/* runtime.c - contexts of handles: CUDA Runtime API reference, "Interactions with the
 * CUDA Driver API". */
#include "tests/fake_cudnn/runtime.h"

#include <string.h>

static CUresult have_context(void)
{
    CUcontext ctx = NULL;
    CUresult rc = cuInit(0);

    if (!rc)
        rc = cuCtxGetCurrent(&ctx);
    if (rc || ctx)
        return rc;
    rc = cuDevicePrimaryCtxRetain(&ctx, 0);
    return rc ? rc : cuCtxSetCurrent(ctx);
}

CUresult runtime_begin(const char *entry, CUcontext *ctx)
{
    CUresult rc = have_context();

    return rc ? rc : fake_cuda_may_allocate(entry, ctx);
}

CUresult runtime_end(CUcontext ctx)
{
    CUresult rc = cuCtxPushCurrent(ctx);

    if (rc)
        return rc;
    rc = cuCtxSynchronize();
    cuCtxPopCurrent(&ctx);
    return rc;
}

void runtime_soil(void *at, size_t len)
{
    if (at)
        memset(at, 0xff, len);
}
