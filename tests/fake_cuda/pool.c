/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - memory in stream order: DA, "Stream Ordered Memory Allocator". */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static struct pool *pool_new(int device, uint64_t types)
{
    struct pool *p = object_new(POOL, sizeof(*p));

    p->device = device;
    p->handle_types = types;
    return p;
}

static struct pool *usual(int device)
{
    struct device *d = device_at(device);

    if (!d->pool)
        d->pool = pool_new(device, 0);
    return d->pool;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceGetDefaultMemPool", 0, NULL);

    if (rc)
        return rc;
    if (device < 0 || device >= device_count())
        return fake_leave(CUDA_ERROR_INVALID_DEVICE);
    *out = (CUmemoryPool)usual(device);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    CUresult rc = fake_enter("cuMemPoolCreate", 0, NULL);

    if (rc)
        return rc;
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        props->location.id < 0 || props->location.id >= device_count())
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *out = (CUmemoryPool)pool_new(props->location.id, props->handleTypes);
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemPoolDestroy: returns at once, its memory stays until that is freed; "a
 * device's default memory pool cannot be destroyed". */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    CUresult rc = fake_enter("cuMemPoolDestroy", 0, NULL);
    struct pool *p;

    if (rc)
        return rc;
    p = object_of(handle, POOL, "cuMemPoolDestroy");
    if (device_at(p->device)->pool == p)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    p->object.is_alive = 0;
    return fake_leave(CUDA_SUCCESS);
}

/* An unsafe call (H100, unsafe/global_self). */
CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute name,
                               void *value)
{
    CUresult rc = fake_enter("cuMemPoolGetAttribute", UNSAFE, NULL);
    uint64_t none = 0;

    if (rc)
        return rc;
    object_of(handle, POOL, "cuMemPoolGetAttribute");
    if (!value || name < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(value, &none, sizeof(none));
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map,
                            size_t n)
{
    CUresult rc = fake_enter("cuMemPoolSetAccess", 0, NULL);

    if (rc)
        return rc;
    object_of(handle, POOL, "cuMemPoolSetAccess");
    return fake_leave(map || !n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- allocated and freed ------------------------------------------------- */

/* What this stream has freed comes back to it at once, under another id (H100,
 * pool/reuse). */
static struct region *reused(struct stream *s, const struct pool *p, size_t len)
{
    struct region *r;

    for (int i = 0; (r = region_each(i)); i++)
        if (r->freed == s && r->pool == p && r->len >= len) {
            r->freed = NULL;
            r->id = fake_next_id();
            r->len = len;
            return r;
        }
    return NULL;
}

static CUresult alloc(struct stream *s, struct pool *p, CUdeviceptr *at,
                      size_t len)
{
    struct work w = {.kind = W_ALLOC};
    struct region *r;
    CUresult rc;

    if (!at || !len || p->is_import)
        return CUDA_ERROR_INVALID_VALUE;
    rc = s->capture ? CUDA_SUCCESS : capture_allows();
    r = rc ? NULL : reused(s, p, len);
    if (!rc && !r) {
        rc = memory_new(len, p->device, NULL, R_POOL, &r);
        if (!rc)
            r->pool = p;
    }
    if (rc)
        return rc;
    r->handle_types = p->handle_types;
    *at = r->at;
    return stream_put(s, &w);
}

CUresult cuMemAllocAsync(CUdeviceptr *at, size_t len, CUstream stream)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuMemAllocAsync", 0, stream, &s);

    return rc ? rc : fake_leave(alloc(s, usual(s->ctx->device), at, len));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t len, CUmemoryPool pool,
                                 CUstream stream)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuMemAllocFromPoolAsync", 0, stream, &s);

    if (rc)
        return rc;
    return fake_leave(
        alloc(s, object_of(pool, POOL, "cuMemAllocFromPoolAsync"), at, len));
}

void pool_forget(uint64_t id)
{
    struct region *r = region_by_id(id);

    if (r && r->freed)
        region_remove(r);
}

/* The address is unknown from the call on (H100, pool/behind_wait). */
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    struct work w = {.kind = W_FREE};
    struct region *r;
    struct stream *s;
    CUresult rc = fake_enter_stream("cuMemFreeAsync", 0, stream, &s);

    if (rc)
        return rc;
    r = region_at(at);
    if (!r || r->at != at || (r->kind != R_POOL && r->kind != R_POOL_IMPORT))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!s->capture) {
        r->freed = s;
        w.memory.id = r->id;
    }
    return fake_leave(stream_put(s, &w));
}

/* ---- shared -------------------------------------------------------------- */

/* DA cuMemPoolExportToShareableHandle: of a pool that was made for it. */
CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags)
{
    struct pool *p;
    int fd;
    CUresult rc = fake_enter("cuMemPoolExportToShareableHandle", 0, NULL);

    if (rc)
        return rc;
    p = object_of(handle, POOL, "cuMemPoolExportToShareableHandle");
    if (!out || flags || type != FD || !(p->handle_types & FD) || p->is_import)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    fd = memory_file("pool", p->device);
    if (fd < 0)
        return fake_leave(CUDA_ERROR_OPERATING_SYSTEM);
    memcpy(out, &fd, sizeof(fd));
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *from,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    int number, device = -1;
    struct pool *p;
    CUresult rc = fake_enter("cuMemPoolImportFromShareableHandle", 0, NULL);

    if (rc)
        return rc;
    number = memory_file_device("pool", (int)(intptr_t)from);
    for (int i = 0; i < device_count(); i++)
        if (device_at(i)->number == number)
            device = i;
    if (!out || flags || type != FD || device < 0)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    p = pool_new(device, FD);
    p->is_import = 1;
    *out = (CUmemoryPool)p;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr at)
{
    struct shared_handle h = {.magic = 0};
    struct region *r;
    CUresult rc = fake_enter("cuMemPoolExportPointer", 0, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!out || !r || r->kind != R_POOL || !(r->handle_types & FD))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    h.id = r->id;
    h.offset = r->at - r->block->at;
    h.len = r->len;
    rc = handle_open(&h, HANDLE_POOL);
    if (!rc) {
        memset(out, 0, sizeof(*out));
        memcpy(out, &h, sizeof(h));
    }
    return fake_leave(rc);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool handle,
                                CUmemPoolPtrExportData *from)
{
    struct shared_handle h;
    struct pool *p;
    struct region *r;
    struct block *b;
    int fd = -1;
    CUresult rc = fake_enter("cuMemPoolImportPointer", 0, NULL);

    if (rc)
        return rc;
    p = object_of(handle, POOL, "cuMemPoolImportPointer");
    if (!out || !from || !p->is_import)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(&h, from, sizeof(h));
    rc = handle_ask(&h, HANDLE_POOL, &fd);
    if (rc)
        return fake_leave(rc);
    b = block_import(fd, (size_t)lseek(fd, 0, SEEK_END), p->device);
    if (!b)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    b->n_users++;
    r = region_add(b->at + h.offset, h.len, R_POOL_IMPORT);
    r->block = b;
    r->device = p->device;
    r->pool = p;
    r->handle_types = FD;
    *out = r->at;
    return fake_leave(CUDA_SUCCESS);
}
