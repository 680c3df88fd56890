/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - which addresses are known, and cuMemAlloc: DA, "Memory Management". */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>

static struct region **regions; /* by address, none overlaps */
static int n_regions, room;
static uint64_t last_id;

uint64_t fake_next_id(void) { return ++last_id; }

/* ---- regions ------------------------------------------------------------- */

/* How many begin at or before that address. */
static int place_of(CUdeviceptr at)
{
    int low = 0, high = n_regions;

    while (low < high) {
        int middle = (low + high) / 2;

        if (regions[middle]->at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct region *region_each(int i) { return i < n_regions ? regions[i] : NULL; }

static struct region *find(CUdeviceptr at)
{
    int i = place_of(at);

    return i && at - regions[i - 1]->at < regions[i - 1]->len ? regions[i - 1]
                                                              : NULL;
}

/* What cuMemFreeAsync was called for is unknown at once (H100, pool/behind_wait). */
struct region *region_at(CUdeviceptr at)
{
    struct region *r = find(at);

    return r && !r->freed ? r : NULL;
}

int region_touches(CUdeviceptr at, size_t len)
{
    int i = place_of(at);

    return find(at) || (i < n_regions && regions[i]->at < at + len);
}

struct region *region_by_id(uint64_t id)
{
    for (int i = 0; i < n_regions; i++)
        if (regions[i]->id == id)
            return regions[i];
    return NULL;
}

struct region *region_add(CUdeviceptr at, size_t len, enum region_kind kind)
{
    struct region *r = calloc(1, sizeof(*r));
    int i = place_of(at);

    if (n_regions == room) {
        room = room ? 2 * room : 64;
        regions = realloc(regions, (size_t)room * sizeof(*regions));
    }
    memmove(regions + i + 1, regions + i,
            (size_t)(n_regions - i) * sizeof(*regions));
    regions[i] = r;
    n_regions++;
    r->at = at;
    r->len = len;
    r->kind = kind;
    r->device = -1;
    r->is_accessible = 1;
    r->id = fake_next_id();
    return r;
}

void region_remove(struct region *r)
{
    int i = place_of(r->at) - 1;

    memmove(regions + i, regions + i + 1,
            (size_t)(n_regions - i - 1) * sizeof(*regions));
    n_regions--;
    if (r->block && r->kind != R_MAPPED)
        block_drop(r->block);
    free(r);
}

/* PG, "Peer-to-Peer Memory Access": memory of another device after
 * cuCtxEnablePeerAccess; an import comes with it (DA cuIpcOpenMemHandle). */
static int reaches(const struct context *ctx, const struct region *r)
{
    return !ctx || r->device < 0 || r->device == ctx->device ||
           r->kind == R_IMPORT || ctx->peers & 1u << r->device;
}

CUresult region_check(CUdeviceptr at, size_t len, struct context *ctx,
                      struct region **out)
{
    struct region *r = region_at(at);

    *out = r;
    if (!r || len > r->len - (size_t)(at - r->at) || !r->is_accessible ||
        !reaches(ctx, r))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A stream that frees has come there later than what it does before. */
void *memory_view(CUdeviceptr at, size_t len, struct context *ctx)
{
    struct region *r;
    void *view = NULL;

    pthread_mutex_lock(fake_lock());
    r = find(at);
    if (r && len <= r->len - (size_t)(at - r->at) && r->is_accessible &&
        reaches(ctx, r))
        view = arena_has(at) ? arena_view(at) : (void *)at;
    pthread_mutex_unlock(fake_lock());
    return view;
}

/* ---- rooms --------------------------------------------------------------- */

enum { ALIGNED = 512 }; /* H100, pointer/device: 1000 bytes lie 1024 apart */

static CUdeviceptr aligned(CUdeviceptr at)
{
    return (at + ALIGNED - 1) & ~(CUdeviceptr)(ALIGNED - 1);
}

/* The first gap of len bytes in a block, 0 where there is none. */
static CUdeviceptr gap_in(const struct block *b, size_t len)
{
    CUdeviceptr at = b->at;

    for (int i = place_of(b->at - 1); i < n_regions; i++) {
        if (regions[i]->at >= b->at + b->len)
            break;
        if (at + len <= regions[i]->at)
            return at;
        at = aligned(regions[i]->at + regions[i]->len);
    }
    return at + len <= b->at + b->len ? at : 0;
}

static struct block *shared_room(size_t len, int device, int room_kind,
                                 CUdeviceptr *at)
{
    for (struct block *b = block_each(NULL); b; b = block_each(b)) {
        if (b->is_shared_room != room_kind || b->device != device)
            continue;
        *at = gap_in(b, len);
        if (*at)
            return b;
    }
    return NULL;
}

CUresult memory_new(size_t len, int device, struct context *ctx,
                    enum region_kind kind, struct region **out)
{
    int room_kind = len > GRANULE / 2 ? 0 : kind == R_DEVICE ? 1 : 2;
    struct block *b = NULL;
    CUdeviceptr at = 0;

    if (room_kind)
        b = shared_room(len, device, room_kind, &at);
    if (!b) {
        CUresult rc = block_new(len, device, &b);

        if (rc)
            return rc;
        b->is_shared_room = room_kind;
        at = b->at;
    }
    b->n_users++;
    *out = region_add(at, len, kind);
    (*out)->block = b;
    (*out)->device = device;
    (*out)->ctx = ctx;
    return CUDA_SUCCESS;
}

/* ---- entries ------------------------------------------------------------- */

CUresult cuMemAlloc(CUdeviceptr *at, size_t len)
{
    struct context *ctx;
    struct region *r;
    CUresult rc = fake_enter("cuMemAlloc", NEED_CONTEXT | UNSAFE | ALONE, &ctx);

    if (rc)
        return rc;
    if (!at || !len)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = memory_new(len, ctx->device, ctx, R_DEVICE, &r);
    if (!rc)
        *at = r->at;
    return fake_leave(rc);
}

/* DA cuMemFree: by its first address alone; 0 is nothing.  It waits for the context's
 * streams (H100, queue/behind_memop).  An import is closed, not freed. */
CUresult cuMemFree(CUdeviceptr at)
{
    CUresult rc = fake_enter("cuMemFree", ALONE | (at ? UNSAFE : 0), NULL);
    struct region *r;

    if (rc)
        return rc;
    if (!at)
        return fake_leave(CUDA_SUCCESS);
    r = region_at(at);
    if (!r || r->at != at ||
        (r->kind != R_DEVICE && r->kind != R_POOL && r->kind != R_POOL_IMPORT))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (r->ctx) {
        uint64_t id = r->id;

        context_drain(r->ctx);
        r = region_by_id(id);
        if (!r) /* another thread has freed it meanwhile */
            return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    region_remove(r);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemGetInfo(size_t *left, size_t *all)
{
    struct context *ctx;
    CUresult rc = fake_enter("cuMemGetInfo", NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    if (all)
        *all = device_memory();
    if (left)
        *left = device_memory() - device_at(ctx->device)->used;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuMemGetAddressRange: NOT_FOUND for what is unknown; either may be NULL. */
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *len, CUdeviceptr at)
{
    struct region *r;
    CUresult rc = fake_enter("cuMemGetAddressRange", 0, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!r)
        return fake_leave(CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = r->at;
    if (len)
        *len = r->len;
    return fake_leave(CUDA_SUCCESS);
}

/* Managed memory is left out: no attribute says that there is any. */
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t len, unsigned flags)
{
    (void)at, (void)len, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* DA cuMemRangeGetAttribute: "the memory range must refer to managed memory". */
CUresult cuMemRangeGetAttribute(void *to, size_t to_len,
                                CUmem_range_attribute name, CUdeviceptr at,
                                size_t len)
{
    CUresult rc = fake_enter("cuMemRangeGetAttribute", 0, NULL);

    (void)to, (void)to_len, (void)name, (void)at, (void)len;
    return rc ? rc : fake_leave(CUDA_ERROR_INVALID_VALUE);
}
