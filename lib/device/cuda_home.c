/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_home.c - contexts, and the GPUs whose memory they can use.
 *
 * CUDA_VISIBLE_DEVICES decides how a process numbers GPUs, so ranks name a GPU to each
 * other by its UUID.  Source: CUDA Driver API, "Peer Context Memory Access".
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_stream.h"
#include "lib/device/device.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <string.h>

static int home_of(const struct coll__cuda *cuda, CUcontext ctx,
                   struct coll__cuda_home *out)
{
    CUresult rc = cuda->cuCtxPushCurrent(ctx);
    CUdevice device = 0;
    CUuuid uuid;

    if (rc)
        return coll__cuda_status(rc, "cuCtxPushCurrent");
    rc = cuda->cuCtxGetDevice(&device);
    if (!rc)
        rc = cuda->cuDeviceGetUuid(&uuid, device);
    cuda->cuCtxPopCurrent(&ctx);
    if (rc)
        return coll__cuda_status(rc, "cuDeviceGetUuid");
    out->ctx = ctx;
    out->device = device;
    memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
    return COLL_OK;
}

int coll__cuda_home_of(void *ctx, struct coll__cuda_home *out)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUcontext current = ctx;
    CUresult rc = CUDA_SUCCESS;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    if (!ctx)
        rc = cuda->cuCtxGetCurrent(&current);
    if (rc)
        return coll__cuda_status(rc, "cuCtxGetCurrent");
    if (!current) {
        log_error("cuda", "this thread has no CUDA context; call "
                          "cudaSetDevice() before");
        return COLL_ERR_INVALID;
    }
    return home_of(cuda, current, out);
}

int coll__cuda_go_in(const struct coll__cuda_home *home, int *was)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    status = coll__cuda_status(cuda->cuCtxPushCurrent(home->ctx),
                               "cuCtxPushCurrent");
    if (status)
        return status;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    *was = (int)mode;
    return COLL_OK;
}

void coll__cuda_go_out(int was)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUstreamCaptureMode mode = (CUstreamCaptureMode)was;
    CUcontext ctx;

    if (!cuda)
        return;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    cuda->cuCtxPopCurrent(&ctx);
}

void *coll__cuda_context(void)
{
    const struct coll__cuda *cuda = NULL;
    CUcontext context = NULL;

    coll__cuda_look();
    if (atomic_load_explicit(&coll__device_is_here, memory_order_relaxed))
        cuda = coll__cuda_driver(NULL, 0);
    if (!cuda || cuda->cuCtxGetCurrent(&context))
        return NULL;
    return context;
}

/* CU_DEVICE_ATTRIBUTE_MPS_ENABLED.  Headers have it from 13.0 on; drivers that do not
 * know it return an error. */
int coll__cuda_has_mps(int device)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    const CUdevice_attribute mps_enabled = (CUdevice_attribute)133;
    int has = 0;

    if (!cuda || cuda->cuDeviceGetAttribute(&has, mps_enabled, device))
        return 0;
    return has;
}

int coll__cuda_clear(void *stream, void *at, size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(
        cuda->cuMemsetD32Async((CUdeviceptr)at, 0, len / 4, stream),
        "cuMemsetD32Async");
}

int coll__cuda_drain(void)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(cuda->cuCtxSynchronize(), "cuCtxSynchronize");
}

/* ---- other GPUs ---------------------------------------------------------- */

int coll__cuda_number_of(const unsigned char uuid[16])
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUuuid its;
    int n = coll__cuda_count();

    for (int d = 0; d < n; d++)
        if (!cuda->cuDeviceGetUuid(&its, d) && !memcmp(its.bytes, uuid, 16))
            return d;
    return -1;
}

int coll__cuda_can_reach(const struct coll__cuda_home *from,
                         const unsigned char uuid[16], char *why, size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(why, len);
    int device, can = 0;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    if (!memcmp(from->uuid, uuid, 16))
        return COLL_OK;
    device = coll__cuda_number_of(uuid);
    if (device < 0) {
        snprintf(why, len,
                 "this process does not see its GPU; let "
                 "CUDA_VISIBLE_DEVICES name those of all ranks of the host");
        return COLL_ERR_UNSUPPORTED;
    }
    rc = cuda->cuDeviceCanAccessPeer(&can, from->device, device);
    if (rc)
        return coll__cuda_verdict(rc, "cuDeviceCanAccessPeer", why, len);
    if (can)
        return COLL_OK;
    snprintf(why, len,
             "GPU %d cannot use the memory of GPU %d; see nvidia-smi "
             "topo -p2p r",
             from->device, device);
    return COLL_ERR_UNSUPPORTED;
}

int coll__cuda_reach(void *ctx, char *why, size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(why, len);
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    rc = cuda->cuCtxEnablePeerAccess(ctx, 0);
    if (rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return COLL_OK;
    return coll__cuda_verdict(rc, "cuCtxEnablePeerAccess", why, len);
}

/* ---- streams of one's own ------------------------------------------------ */

int coll__cuda_stream_create(void **stream)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUstream s = NULL;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    status = coll__cuda_status(cuda->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING),
                               "cuStreamCreate");
    if (status == COLL_OK)
        *stream = s;
    return status;
}

int coll__cuda_stream_wait(void *stream)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(cuda->cuStreamSynchronize(stream),
                             "cuStreamSynchronize");
}

void coll__cuda_stream_destroy(void *stream)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);

    if (cuda && stream)
        cuda->cuStreamDestroy(stream);
}
