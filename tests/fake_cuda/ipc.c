/* SPDX-License-Identifier: BSD-3-Clause */
/* ipc.c - device memory of another process: DA, cuIpcGetMemHandle and following. */
#include "tests/fake_cuda/fake.h"

#include <string.h>
#include <unistd.h>

/* FAKE_CUDA_IPC=0: refused, as in some containers and on MIG devices. */
static int is_allowed(void) { return fake_setting("FAKE_CUDA_IPC", 1) != 0; }

int memory_descriptor(uint64_t id)
{
    struct region *r = region_by_id(id);

    return r && (r->kind == R_DEVICE || r->kind == R_POOL) ? r->block->fd : -1;
}

/* DA cuIpcGetMemHandle: memory of cuMemAlloc alone; from anywhere inside, the handle
 * names the allocation (H100, ipc/handles); another one has another handle. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr at)
{
    struct shared_handle h = {.magic = 0};
    struct region *r;
    CUresult rc = fake_enter("cuIpcGetMemHandle", 0, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!is_allowed())
        return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    if (!out || !r || r->kind != R_DEVICE)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    h.id = r->id;
    h.block = r->block->id;
    h.offset = r->at - r->block->at;
    h.len = r->len;
    h.device = (uint32_t)device_at(r->device)->number;
    rc = handle_open(&h, HANDLE_MEMORY);
    if (!rc) {
        memset(out, 0, sizeof(*out));
        memcpy(out, &h, sizeof(h));
    }
    return fake_leave(rc);
}

/* The same handle again: DA cuIpcOpenMemHandle, "will return the same pointer"; in
 * another context of the process INVALID_HANDLE (H100, ipc/other_context). */
static struct region *opened(const CUipcMemHandle *handle)
{
    struct region *r;

    for (int i = 0; (r = region_each(i)); i++)
        if (r->kind == R_IMPORT && !memcmp(r->handle, handle, sizeof(*handle)))
            return r;
    return NULL;
}

static struct block *block_of(const struct shared_handle *h)
{
    for (struct block *b = block_each(NULL); b; b = block_each(b))
        if (b->owner_pid == (int)h->pid && b->owner_id == h->block)
            return b;
    return NULL;
}

/* Small allocations share a block: it is mapped once. */
static CUresult import_block(const struct shared_handle *h, int device, int fd,
                             struct block **out)
{
    size_t len = (size_t)lseek(fd, 0, SEEK_END);

    *out = block_of(h);
    if (*out) {
        close(fd);
        return CUDA_SUCCESS;
    }
    *out = block_import(fd, len, device);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->owner_pid = (int)h->pid;
    (*out)->owner_id = h->block;
    return CUDA_SUCCESS;
}

static int visible(uint32_t number)
{
    for (int i = 0; i < device_count(); i++)
        if (device_at(i)->number == (int)number)
            return i;
    return -1;
}

static CUresult open_it(struct context *ctx, const struct shared_handle *h,
                        const CUipcMemHandle *handle, CUdeviceptr *out)
{
    int device = visible(h->device), fd = -1;
    struct region *r;
    struct block *b;
    CUresult rc = handle_ask(h, HANDLE_MEMORY, &fd);

    if (rc)
        return rc;
    if (device >= 0 && device != ctx->device &&
        !device_peers(ctx->device, device)) {
        close(fd);
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    rc = import_block(h, device >= 0 ? device : ctx->device, fd, &b);
    if (rc)
        return rc;
    b->n_users++;
    r = region_add(b->at + h->offset, h->len, R_IMPORT);
    r->block = b;
    r->ctx = ctx;
    r->device = b->device;
    r->n_opened = 1;
    memcpy(r->handle, handle, sizeof(r->handle));
    *out = r->at;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle,
                            unsigned flags)
{
    struct context *ctx;
    struct shared_handle h;
    struct region *r;
    CUresult rc = fake_enter("cuIpcOpenMemHandle", NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    if (!is_allowed())
        return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(&h, &handle, sizeof(h));
    r = opened(&handle);
    if (!r)
        return fake_leave(open_it(ctx, &h, &handle, out));
    if (r->ctx != ctx)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    r->n_opened++;
    *out = r->at;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuIpcCloseMemHandle: by the address that opening gave; what the context still
 * does with it is waited for (H100, queue/behind_memop). */
CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    struct region *r;
    uint64_t id;
    CUresult rc = fake_enter("cuIpcCloseMemHandle", NEED_CONTEXT, NULL);

    if (rc)
        return rc;
    r = region_at(at);
    if (!r || r->kind != R_IMPORT || r->at != at)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    id = r->id;
    context_drain(r->ctx);
    r = region_by_id(id);
    if (r && --r->n_opened == 0)
        region_remove(r);
    return fake_leave(CUDA_SUCCESS);
}
