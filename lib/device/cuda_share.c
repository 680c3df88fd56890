/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_share.c - device memory in other processes of the host, by IPC handles.
 *
 * A handle names a whole allocation, so the pointer's offset in it is sent along.
 * Source: CUDA Driver API, cuIpcGetMemHandle and following.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(CUipcMemHandle) ==
                   sizeof(((struct coll__cuda_memory *)0)->handle),
               "a handle is 64 bytes");

/* Mostly this is so for all memory. */
static int refused(CUresult rc, const char *call, char *why, size_t len)
{
    int status = coll__cuda_verdict(rc, call, why, len);
    size_t n = strlen(why);

    snprintf(why + n, len - n,
             "; containers need --ipc=host --pid=host for CUDA IPC, and MIG "
             "has none");
    return status;
}

int coll__cuda_find(const void *ptr, struct coll__cuda_memory *out, char *why,
                    size_t why_len)
{
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    const struct coll__cuda *cuda = coll__cuda_driver(why, why_len);
    unsigned long long id = 0;
    void *value = &id;
    CUdeviceptr base = 0;
    size_t len = 0;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    rc = cuda->cuMemGetAddressRange(&base, &len, (CUdeviceptr)ptr);
    if (rc)
        return coll__cuda_verdict(rc, "cuMemGetAddressRange", why, why_len);
    rc = cuda->cuPointerGetAttributes(1, &name, &value, (CUdeviceptr)ptr);
    if (rc)
        return coll__cuda_verdict(rc, "cuPointerGetAttributes", why, why_len);
    out->offset = (CUdeviceptr)ptr - base;
    out->len = len;
    out->id = id;
    return COLL_OK;
}

int coll__cuda_try_export(const void *ptr, struct coll__cuda_memory *out,
                          char *why, size_t why_len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(why, why_len);
    CUipcMemHandle handle;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    rc = cuda->cuIpcGetMemHandle(&handle, (CUdeviceptr)ptr);
    if (rc)
        return refused(rc, "cuIpcGetMemHandle", why, why_len);
    memcpy(out->handle, &handle, sizeof(handle));
    return coll__cuda_find(ptr, out, why, why_len);
}

int coll__cuda_try_import(const struct coll__cuda_memory *memory, void **ptr,
                          char *why, size_t why_len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(why, why_len);
    CUipcMemHandle handle;
    CUdeviceptr at = 0;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    if (memory->offset >= memory->len) {
        snprintf(why, why_len, "a peer's memory ends before it begins");
        return COLL_ERR_INVALID;
    }
    memcpy(&handle, memory->handle, sizeof(handle));
    rc = cuda->cuIpcOpenMemHandle(&at, handle,
                                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (rc)
        return refused(rc, "cuIpcOpenMemHandle", why, why_len);
    *ptr = (void *)(at + memory->offset);
    return COLL_OK;
}

static int say(int status, const char *why)
{
    if (status)
        log_error("cuda", "%s", why);
    return status;
}

int coll__cuda_export(const void *ptr, struct coll__cuda_memory *out)
{
    char why[512];

    return say(coll__cuda_try_export(ptr, out, why, sizeof(why)), why);
}

int coll__cuda_import(const struct coll__cuda_memory *memory, void **ptr)
{
    char why[512];

    return say(coll__cuda_try_import(memory, ptr, why, sizeof(why)), why);
}

int coll__cuda_unimport(const struct coll__cuda_memory *memory, void *ptr)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(
        cuda->cuIpcCloseMemHandle((CUdeviceptr)ptr - memory->offset),
        "cuIpcCloseMemHandle");
}
