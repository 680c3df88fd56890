/* SPDX-License-Identifier: BSD-3-Clause */
/* pointer.c - what the driver knows of an address: DA, "Unified Addressing". */
#include "tests/fake_cuda/fake.h"

#include <string.h>

#define ATTRIBUTE(name) CU_POINTER_ATTRIBUTE_##name

/* As wide as the attribute is. */
static void put_int(void *out, int value)
{
    memcpy(out, &value, sizeof(value));
}

static void put_wide(void *out, uint64_t value)
{
    memcpy(out, &value, sizeof(value));
}

static CUresult of_region(void *out, CUpointer_attribute name, CUdeviceptr at,
                          const struct region *r)
{
    switch (name) {
    case ATTRIBUTE(CONTEXT):
        put_wide(out, (uint64_t)r->ctx);
        break;
    case ATTRIBUTE(MEMORY_TYPE):
        put_int(out,
                r->device >= 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
        break;
    case ATTRIBUTE(DEVICE_POINTER):
        put_wide(out, at);
        break;
    case ATTRIBUTE(HOST_POINTER):
        if (r->device >= 0)
            return CUDA_ERROR_INVALID_VALUE;
        put_wide(out, at);
        break;
    case ATTRIBUTE(SYNC_MEMOPS):
        put_int(out, r->is_sync);
        break;
    case ATTRIBUTE(BUFFER_ID):
        put_wide(out, r->id);
        break;
    case ATTRIBUTE(IS_MANAGED):
        put_int(out, 0);
        break;
    case ATTRIBUTE(DEVICE_ORDINAL):
        put_int(out, r->device >= 0 ? r->device : r->ctx->device);
        break;
    case ATTRIBUTE(IS_LEGACY_CUDA_IPC_CAPABLE): /* H100: not an import */
        put_int(out, r->kind == R_DEVICE);
        break;
    case ATTRIBUTE(RANGE_START_ADDR):
        put_wide(out, r->at);
        break;
    case ATTRIBUTE(RANGE_SIZE):
        put_wide(out, r->len);
        break;
    case ATTRIBUTE(MAPPED):
        put_int(out, 1);
        break;
    case ATTRIBUTE(ALLOWED_HANDLE_TYPES):
        put_wide(out, r->handle_types);
        break;
    case ATTRIBUTE(IS_GPU_DIRECT_RDMA_CAPABLE):
        put_int(out, 0);
        break;
    case ATTRIBUTE(ACCESS_FLAGS):
        put_int(out, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        break;
    case ATTRIBUTE(MEMPOOL_HANDLE):
        put_wide(out, (uint64_t)r->pool);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* DA cuPointerGetAttribute: INVALID_VALUE for what is unknown; the device's pointer
 * needs a context (H100, pointer/without_context).  It answers after an error too. */
CUresult cuPointerGetAttribute(void *out, CUpointer_attribute name,
                               CUdeviceptr at)
{
    struct region *r;
    CUresult rc = fake_enter("cuPointerGetAttribute", IN_ERROR, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!out || !r)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (name == ATTRIBUTE(DEVICE_POINTER))
        context_current(&rc);
    return fake_leave(rc ? rc : of_region(out, name, at, r));
}

/* DA cuPointerGetAttributes: no error for what is unknown, but zeros; the device is
 * -2, the host's pointer the address itself, and the range is not written to (H100,
 * pointer/host_unknown). */
static void of_nothing(void *out, CUpointer_attribute name, CUdeviceptr at)
{
    switch (name) {
    case ATTRIBUTE(CONTEXT):
    case ATTRIBUTE(DEVICE_POINTER):
    case ATTRIBUTE(BUFFER_ID):
    case ATTRIBUTE(ALLOWED_HANDLE_TYPES):
    case ATTRIBUTE(MEMPOOL_HANDLE):
        put_wide(out, 0);
        break;
    case ATTRIBUTE(HOST_POINTER):
        put_wide(out, arena_has(at) ? 0 : at);
        break;
    case ATTRIBUTE(DEVICE_ORDINAL):
        put_int(out, -2);
        break;
    case ATTRIBUTE(RANGE_START_ADDR):
    case ATTRIBUTE(RANGE_SIZE):
        break;
    default:
        put_int(out, 0);
    }
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *names,
                                void **out, CUdeviceptr at)
{
    struct region *r;
    CUresult rc = fake_enter("cuPointerGetAttributes", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!names || !out)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    r = region_at(at);
    for (unsigned i = 0; i < n; i++)
        if (!r)
            of_nothing(out[i], names[i], at);
        else if (of_region(out[i], names[i], at, r) &&
                 names[i] == ATTRIBUTE(HOST_POINTER))
            put_wide(out[i], 0);
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuPointerSetAttribute: SYNC_MEMOPS of device memory. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute name,
                               CUdeviceptr at)
{
    struct region *r;
    CUresult rc = fake_enter("cuPointerSetAttribute", 0, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!value || !r || r->device < 0 || name != ATTRIBUTE(SYNC_MEMOPS))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(&r->is_sync, value, sizeof(r->is_sync));
    return fake_leave(CUDA_SUCCESS);
}
