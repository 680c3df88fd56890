/* SPDX-License-Identifier: BSD-3-Clause */
/* vmm.c - memory by cuMemCreate and cuMemMap: DA, "Virtual Memory Management". */
#include "tests/fake_cuda/fake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct physical {
    struct object object;
    int fd, n_users, device;
    uint64_t types;
    size_t len;
};

struct reservation {
    struct reservation *next;
    CUdeviceptr at;
    size_t len;
};
static struct reservation *reservations;

/* ---- physical memory ----------------------------------------------------- */

static struct physical *physical_new(int fd, size_t len, int device,
                                     uint64_t types)
{
    struct physical *p = object_new(PHYSICAL, sizeof(*p));

    p->fd = fd;
    p->n_users = 1;
    p->device = device;
    p->types = types;
    p->len = len;
    return p;
}

static void physical_drop(struct physical *p)
{
    if (--p->n_users)
        return;
    p->object.is_alive = 0;
    close(p->fd);
}

CUresult cuMemGetAllocationGranularity(size_t *out,
                                       const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags which)
{
    CUresult rc = fake_enter("cuMemGetAllocationGranularity", 0, NULL);

    (void)which;
    if (rc)
        return rc;
    if (!out || !prop)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *out = GRANULE;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemCreate: in units of the granularity; a fabric's handle needs what is not
 * there (H100, vmm/refused). */
CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t len,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult rc = fake_enter("cuMemCreate", 0, NULL);
    int fd, device;

    if (rc)
        return rc;
    if (!out || !prop || flags || !len || len % GRANULE ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    device = prop->location.id;
    if (device < 0 || device >= device_count())
        return fake_leave(CUDA_ERROR_INVALID_DEVICE);
    if (prop->requestedHandleTypes & ~(unsigned)FD)
        return fake_leave(CUDA_ERROR_NOT_PERMITTED);
    if (len > device_memory())
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    fd = memory_file("physical", device);
    if (fd < 0 || ftruncate(fd, (off_t)len))
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    *out = (CUmemGenericAllocationHandle)physical_new(
        fd, len, device, prop->requestedHandleTypes);
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemRelease: a mapping keeps the memory. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult rc = fake_enter("cuMemRelease", 0, NULL);

    if (rc)
        return rc;
    physical_drop(object_of((void *)handle, PHYSICAL, "cuMemRelease"));
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemGetAllocationPropertiesFromHandle: what cuMemCreate was told, of an
 * import as well. */
CUresult
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                       CUmemGenericAllocationHandle handle)
{
    struct physical *p;
    CUresult rc = fake_enter("cuMemGetAllocationPropertiesFromHandle", 0, NULL);

    if (rc)
        return rc;
    p = object_of((void *)handle, PHYSICAL,
                  "cuMemGetAllocationPropertiesFromHandle");
    if (!prop)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *prop = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)p->types,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = p->device}};
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemRetainAllocationHandle: the handle that was mapped, from any address of
 * it, to be released once more; fails where nothing is mapped. */
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out,
                                     void *at)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemRetainAllocationHandle", 0, NULL);

    if (rc)
        return rc;
    r = region_at((CUdeviceptr)at);
    if (!out || !r || r->kind != R_MAPPED)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    r->physical->n_users++;
    *out = (CUmemGenericAllocationHandle)r->physical;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemExportToShareableHandle(void *out,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    struct physical *p;
    int fd;
    CUresult rc = fake_enter("cuMemExportToShareableHandle", 0, NULL);

    if (rc)
        return rc;
    p = object_of((void *)handle, PHYSICAL, "cuMemExportToShareableHandle");
    if (!out || flags || type != FD || !(p->types & FD))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return fake_leave(CUDA_ERROR_OPERATING_SYSTEM);
    memcpy(out, &fd, sizeof(fd));
    return fake_leave(CUDA_SUCCESS);
}

/* What is no descriptor of this kind: UNKNOWN (H100, vmm/refused). */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out,
                                        void *from,
                                        CUmemAllocationHandleType type)
{
    int fd = (int)(intptr_t)from, number, device = -1;
    CUresult rc = fake_enter("cuMemImportFromShareableHandle", 0, NULL);

    if (rc)
        return rc;
    if (!out || type != FD)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    number = memory_file_device("physical", fd);
    for (int i = 0; i < device_count(); i++)
        if (device_at(i)->number == number)
            device = i;
    if (device < 0)
        return fake_leave(CUDA_ERROR_UNKNOWN);
    *out = (CUmemGenericAllocationHandle)physical_new(
        fcntl(fd, F_DUPFD_CLOEXEC, 0), (size_t)lseek(fd, 0, SEEK_END), device,
        FD);
    return fake_leave(CUDA_SUCCESS);
}

/* ---- addresses ----------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t len, size_t align,
                             CUdeviceptr wish, unsigned long long flags)
{
    struct reservation *r;
    CUdeviceptr at;
    CUresult rc = fake_enter("cuMemAddressReserve", 0, NULL);

    (void)wish;
    if (rc)
        return rc;
    if (!out || !len || len % GRANULE || flags || align > GRANULE)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    at = arena_take(len);
    if (!at)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    r = calloc(1, sizeof(*r));
    r->at = at;
    r->len = len;
    r->next = reservations;
    reservations = r;
    *out = at;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemAddressFree: exactly what was reserved, with nothing mapped. */
CUresult cuMemAddressFree(CUdeviceptr at, size_t len)
{
    struct reservation **r = &reservations, *gone;
    CUresult rc = fake_enter("cuMemAddressFree", 0, NULL);

    if (rc)
        return rc;
    while (*r && ((*r)->at != at || (*r)->len != len))
        r = &(*r)->next;
    if (!*r || region_touches(at, len))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    gone = *r;
    *r = gone->next;
    free(gone);
    arena_give(at, len);
    return fake_leave(CUDA_SUCCESS);
}

static int is_reserved(CUdeviceptr at, size_t len)
{
    for (struct reservation *r = reservations; r; r = r->next)
        if (at >= r->at && at - r->at <= r->len && len <= r->len - (at - r->at))
            return 1;
    return 0;
}

/* DA cuMemMap: in units of the granularity, all of the handle's memory; more than
 * it has is NOT_SUPPORTED (H100, vmm/mapping). */
CUresult cuMemMap(CUdeviceptr at, size_t len, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *p;
    struct region *r;
    CUresult rc = fake_enter("cuMemMap", 0, NULL);

    if (rc)
        return rc;
    p = object_of((void *)handle, PHYSICAL, "cuMemMap");
    if (!at || !len || at % GRANULE || len % GRANULE || offset || flags ||
        !is_reserved(at, len) || region_touches(at, len))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (len != p->len)
        return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    if (block_map(p->fd, at, len))
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    r = region_add(at, len, R_MAPPED);
    r->device = p->device;
    r->is_accessible = 0;
    r->handle_types = p->types;
    r->physical = p;
    p->n_users++;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t len)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemUnmap", 0, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!r || r->kind != R_MAPPED || r->at != at || r->len != len)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    block_unmap(at, len);
    physical_drop(r->physical);
    region_remove(r);
    return fake_leave(CUDA_SUCCESS);
}

/* DA: what is mapped is not accessible before. */
CUresult cuMemSetAccess(CUdeviceptr at, size_t len, const CUmemAccessDesc *desc,
                        size_t n)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemSetAccess", 0, NULL);

    if (rc)
        return rc;
    if (!desc || !n || !len)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    for (CUdeviceptr p = at; p < at + len; p = r->at + r->len) {
        r = region_at(p);
        if (!r || r->kind != R_MAPPED)
            return fake_leave(CUDA_ERROR_INVALID_VALUE);
        r->is_accessible = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return fake_leave(CUDA_SUCCESS);
}
