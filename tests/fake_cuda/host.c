/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - host memory that the device may use: DA, cuMemHostRegister and
 * cuMemHostAlloc.  The device's address is the host's (H100, attribute 91). */
#include "tests/fake_cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct region *host_at(const void *at)
{
    struct region *r = region_at((CUdeviceptr)at);

    return r && r->device < 0 ? r : NULL;
}

/* What its context still does may use it: H100, queue/behind_memop. */
static CUresult drain_and_remove(struct region *r)
{
    uint64_t id = r->id;

    context_drain(r->ctx);
    r = region_by_id(id);
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    if (r->kind == R_HOST)
        munmap((void *)r->at, r->len);
    region_remove(r);
    return CUDA_SUCCESS;
}

/* ---- allocated ----------------------------------------------------------- */

/* Nothing was asked for: NULL, and no error (H100, host/bad). */
static CUresult alloc(const char *entry, void **out, size_t len, unsigned flags)
{
    struct context *ctx;
    struct region *r;
    void *at = NULL;
    CUresult rc = fake_enter(entry, NEED_CONTEXT | UNSAFE | ALONE, &ctx);

    if (rc)
        return rc;
    if (!out || flags & ~7u)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (len) {
        at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        r = region_add((CUdeviceptr)at, len, R_HOST);
        r->ctx = ctx;
        r->host_flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    }
    *out = at;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemHostAlloc(void **out, size_t len, unsigned flags)
{
    return alloc("cuMemHostAlloc", out, len, flags);
}

CUresult cuMemAllocHost(void **out, size_t len)
{
    return alloc("cuMemAllocHost", out, len, 0);
}

CUresult cuMemFreeHost(void *at)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemFreeHost", ALONE | (at ? UNSAFE : 0), NULL);

    if (rc || !at)
        return rc ? rc : fake_leave(CUDA_SUCCESS);
    r = host_at(at);
    if (!r || r->kind != R_HOST || r->at != (CUdeviceptr)at)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    return fake_leave(drain_and_remove(r));
}

/* ---- registered ---------------------------------------------------------- */

/* Is all of it mapped, and as it has to be?  DA: read-only pages need READ_ONLY. */
static int is_mapped(uintptr_t at, size_t len, int may_be_read_only)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    uintptr_t end = at + len;
    char rights[8], line[512];

    while (f && at < end && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || to <= at)
            continue;
        if (from > at || rights[0] != 'r' ||
            (rights[1] != 'w' && !may_be_read_only))
            break;
        at = to;
    }
    if (f)
        fclose(f);
    return at >= end;
}

/* DA cuMemHostRegister: any range, but none that touches a registered one. */
CUresult cuMemHostRegister(void *at, size_t len, unsigned flags)
{
    struct context *ctx;
    struct region *r;
    CUresult rc =
        fake_enter("cuMemHostRegister", NEED_CONTEXT | UNSAFE | ALONE, &ctx);

    if (rc)
        return rc;
    if (!at || !len || flags & ~15u || arena_has((CUdeviceptr)at))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (region_touches((CUdeviceptr)at, len))
        return fake_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    if (!is_mapped((uintptr_t)at, len,
                   (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    r = region_add((CUdeviceptr)at, len, R_REGISTERED);
    r->ctx = ctx;
    r->host_flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemHostUnregister: NOT_REGISTERED for what is unknown, INVALID_VALUE for an
 * address inside, or of cuMemHostAlloc. */
CUresult cuMemHostUnregister(void *at)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemHostUnregister", UNSAFE | ALONE, NULL);

    if (rc)
        return rc;
    r = host_at(at);
    if (!at || (r && (r->kind != R_REGISTERED || r->at != (CUdeviceptr)at)))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!r)
        return fake_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    return fake_leave(drain_and_remove(r));
}

/* DA cuMemHostGetDevicePointer: flags must be 0. */
CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *at, unsigned flags)
{
    CUresult rc = fake_enter("cuMemHostGetDevicePointer", NEED_CONTEXT, NULL);

    if (rc)
        return rc;
    if (!out || flags || !host_at(at))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *out = (CUdeviceptr)at;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *at)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemHostGetFlags", NEED_CONTEXT, NULL);

    if (rc)
        return rc;
    r = host_at(at);
    if (!flags || !r)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *flags = r->host_flags;
    return fake_leave(CUDA_SUCCESS);
}
