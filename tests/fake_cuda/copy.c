/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c - copies and fills: DA, "API synchronization behavior".
 *
 * Of pageable memory up to STAGED bytes are read at the call, more makes the caller
 * wait (H100, copy/async_behind_wait: 1 MiB returns, 8 MiB does not; documented are
 * 64 KiB); into it the caller always waits, and others with it.
 */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>

#define STAGED ((size_t)4 << 20)

/* device: the arena's; pinned: the host's, known; else pageable */
enum place { DEVICE, PINNED, PAGEABLE };

/* What lies in one known region is fine; what begins in none may be the host's. */
static CUresult place_of(CUdeviceptr at, size_t len, int may_be_unknown,
                         enum place *place)
{
    struct region *r = NULL;
    CUresult rc;

    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    rc = region_check(at, len, NULL, &r);
    *place = r && r->device >= 0 ? DEVICE : r ? PINNED : PAGEABLE;
    if (rc && !r && may_be_unknown && !arena_has(at))
        rc = CUDA_SUCCESS;
    return rc;
}

struct move {
    CUdeviceptr dst, src;
    size_t len;
    int dst_may_be_unknown, src_may_be_unknown;
    int is_sync;
};

/* A call for the whole stream comes back when its bytes have been read and not yet
 * written: other streams must not rely on them (DA, "API synchronization behavior"; H200:
 * 2026-11-27, compare read what was there before). */
static CUresult put_staged(struct stream *s, const struct move *m,
                           struct work *w)
{
    if (m->is_sync)
        stream_wait(s);
    w->copy.staged = malloc(m->len);
    memcpy(w->copy.staged, (const void *)m->src, m->len);
    return stream_put(s, w);
}

/* What waits so keeps other threads out of calls that are ALONE. */
static CUresult put_pageable(struct stream *s, struct work *w)
{
    CUresult rc;

    fake_n_copies++;
    rc = stream_put_and_wait(s, w);
    fake_n_copies--;
    fake_changed();
    return rc;
}

/* Who waits: DA, "Memcpy" and "Synchronous", "Asynchronous". */
static CUresult move(struct stream *s, const struct move *m)
{
    struct work w = {.kind = W_COPY,
                     .copy = {.dst = m->dst, .src = m->src, .len = m->len}};
    enum place dst, src;
    int waits;
    CUresult rc;

    if (!m->len)
        return CUDA_SUCCESS;
    rc = place_of(m->dst, m->len, m->dst_may_be_unknown, &dst);
    if (!rc)
        rc = place_of(m->src, m->len, m->src_may_be_unknown, &src);
    if (rc)
        return rc;
    if (src == PAGEABLE && dst == DEVICE && !s->capture && m->len <= STAGED)
        return put_staged(s, m, &w);
    if (dst == PAGEABLE || src == PAGEABLE)
        return put_pageable(s, &w);
    waits = (dst != DEVICE && src != DEVICE) ||
            (m->is_sync && (dst != DEVICE || src != DEVICE));
    return waits ? stream_put_and_wait(s, &w) : stream_put(s, &w);
}

static CUresult sync_move(const char *entry, struct move m)
{
    struct context *ctx;
    CUresult rc = fake_enter(entry, NEED_CONTEXT | ALONE, &ctx);

    if (rc)
        return rc;
    m.is_sync = 1;
    rc = stream_check(ctx->legacy);
    return fake_leave(rc ? rc : move(ctx->legacy, &m));
}

static CUresult async_move(const char *entry, struct move m, CUstream stream)
{
    struct stream *s;
    CUresult rc = fake_enter_stream(entry, 0, stream, &s);

    return rc ? rc : fake_leave(move(s, &m));
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t len)
{
    return sync_move("cuMemcpyHtoD", (struct move){.dst = dst,
                                                   .src = (CUdeviceptr)src,
                                                   .len = len,
                                                   .src_may_be_unknown = 1});
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t len)
{
    return sync_move("cuMemcpyDtoH", (struct move){.dst = (CUdeviceptr)dst,
                                                   .src = src,
                                                   .len = len,
                                                   .dst_may_be_unknown = 1});
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t len)
{
    return sync_move("cuMemcpyDtoD",
                     (struct move){.dst = dst, .src = src, .len = len});
}

/* Addresses are unified: each is taken for what it is (H100, copy/kinds). */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t len)
{
    return sync_move("cuMemcpy", (struct move){.dst = dst,
                                               .src = src,
                                               .len = len,
                                               .src_may_be_unknown = 1,
                                               .dst_may_be_unknown = 1});
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream s)
{
    return async_move("cuMemcpyAsync",
                      (struct move){.dst = dst,
                                    .src = src,
                                    .len = len,
                                    .src_may_be_unknown = 1,
                                    .dst_may_be_unknown = 1},
                      s);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t len,
                           CUstream s)
{
    return async_move("cuMemcpyHtoDAsync",
                      (struct move){.dst = dst,
                                    .src = (CUdeviceptr)src,
                                    .len = len,
                                    .src_may_be_unknown = 1},
                      s);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t len, CUstream s)
{
    return async_move("cuMemcpyDtoHAsync",
                      (struct move){.dst = (CUdeviceptr)dst,
                                    .src = src,
                                    .len = len,
                                    .dst_may_be_unknown = 1},
                      s);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t len,
                           CUstream s)
{
    return async_move("cuMemcpyDtoDAsync",
                      (struct move){.dst = dst, .src = src, .len = len}, s);
}

/* DA cuMemcpyPeerAsync: the contexts are those of the memory. */
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src,
                           CUcontext from, size_t len, CUstream s)
{
    if (!to || !from)
        return CUDA_ERROR_INVALID_CONTEXT;
    return async_move("cuMemcpyPeerAsync",
                      (struct move){.dst = dst, .src = src, .len = len}, s);
}

/* ---- fills --------------------------------------------------------------- */

/* DA: fills are asynchronous, but a synchronous one of pinned memory. */
static CUresult fill(struct stream *s, CUdeviceptr dst, unsigned value,
                     unsigned width, size_t n, int is_sync)
{
    struct work w = {
        .kind = W_FILL,
        .fill = {.dst = dst, .n = n, .value = value, .width = width}};
    enum place place;
    CUresult rc;

    if (!n)
        return CUDA_SUCCESS;
    if (dst % width)
        return CUDA_ERROR_INVALID_VALUE;
    rc = place_of(dst, n * width, 0, &place);
    if (rc)
        return rc;
    return is_sync && place == PINNED ? stream_put_and_wait(s, &w)
                                      : stream_put(s, &w);
}

static CUresult sync_fill(const char *entry, CUdeviceptr dst, unsigned value,
                          unsigned width, size_t n)
{
    struct context *ctx;
    CUresult rc = fake_enter(entry, NEED_CONTEXT | ALONE, &ctx);

    if (rc)
        return rc;
    rc = stream_check(ctx->legacy);
    return fake_leave(rc ? rc : fill(ctx->legacy, dst, value, width, n, 1));
}

static CUresult async_fill(const char *entry, CUdeviceptr dst, unsigned value,
                           unsigned width, size_t n, CUstream stream)
{
    struct stream *s;
    CUresult rc = fake_enter_stream(entry, 0, stream, &s);

    return rc ? rc : fake_leave(fill(s, dst, value, width, n, 0));
}

CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value, size_t n)
{
    return sync_fill("cuMemsetD8", dst, value, 1, n);
}

CUresult cuMemsetD32(CUdeviceptr dst, unsigned value, size_t n)
{
    return sync_fill("cuMemsetD32", dst, value, 4, n);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n,
                         CUstream s)
{
    return async_fill("cuMemsetD8Async", dst, value, 1, n, s);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t n, CUstream s)
{
    return async_fill("cuMemsetD32Async", dst, value, 4, n, s);
}
