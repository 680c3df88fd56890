/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - streams, and functions of the host in them. */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>

struct stream *stream_new(struct context *ctx, int is_blocking)
{
    struct stream *s = object_new(STREAM, sizeof(*s));

    s->ctx = ctx;
    s->is_blocking = is_blocking;
    s->next = ctx->streams;
    ctx->streams = s;
    return s;
}

int stream_is_idle(const struct stream *s) { return !s->first; }

/* DA cuStreamDestroy: "returns immediately and the resources ... will be released
 * automatically once the device has completed all work". */
void stream_destroy(struct stream *s)
{
    capture_abandon(s);
    s->object.is_alive = 0;
    if (s->is_running)
        pthread_cond_signal(&s->wake);
    if (!s->first)
        queue_remove(s);
}

/* ---- handles ------------------------------------------------------------- */

/* A blocking stream for each thread and context: DA, "Stream synchronization
 * behavior", CU_STREAM_PER_THREAD. */
static struct stream *per_thread(struct context *ctx)
{
    enum { MOST = 16 };
    static __thread struct stream *mine[MOST];
    int i;

    for (i = 0; i < MOST && mine[i]; i++)
        if (mine[i]->ctx == ctx && mine[i]->object.is_alive)
            return mine[i];
    if (i == MOST)
        abort();
    mine[i] = stream_new(ctx, 1);
    queue_add(mine[i]);
    return mine[i];
}

/* What is no stream at all: NVIDIA's driver may crash; so do we. */
CUresult stream_of(CUstream handle, const char *entry, struct stream **s)
{
    CUresult rc;

    if (handle == NULL || handle == CU_STREAM_LEGACY ||
        handle == CU_STREAM_PER_THREAD) {
        struct context *ctx = context_current(&rc);

        if (!rc)
            *s = handle == CU_STREAM_PER_THREAD ? per_thread(ctx) : ctx->legacy;
        return rc;
    }
    *s = object_find(handle, STREAM);
    if (!*s)
        fake_misuse(entry, "stream", handle);
    if (!(*s)->ctx->is_live)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!(*s)->object.is_alive)
        fake_misuse(entry, "stream", handle);
    return CUDA_SUCCESS;
}

/* ---- putting ------------------------------------------------------------- */

/* PG, "Prohibited and Unhandled Operations": while a blocking stream of the context
 * captures, nothing may use the legacy stream. */
static struct capture *implicated(const struct stream *s)
{
    for (struct capture *c = capture_list(); c; c = c->next)
        for (struct stream *t = s->ctx->streams; t; t = t->next)
            if (s->is_legacy && t->capture == c && t->is_blocking)
                return c;
    return NULL;
}

CUresult stream_check(struct stream *s)
{
    struct capture *c = implicated(s);

    if (!c)
        return CUDA_SUCCESS;
    capture_invalidate(c);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult stream_put(struct stream *s, struct work *w)
{
    CUresult rc;

    if (s->capture)
        return capture_put(s, w);
    rc = stream_check(s);
    if (rc)
        work_fini(w);
    else
        queue_put(s, w, 0);
    return rc;
}

CUresult stream_put_and_wait(struct stream *s, struct work *w)
{
    struct op *op;
    CUresult rc;

    if (s->capture)
        return capture_put(s, w);
    rc = stream_check(s);
    if (rc) {
        work_fini(w);
        return rc;
    }
    op = queue_put(s, w, 1);
    while (!op->is_done)
        fake_wait();
    free(op);
    return fake_error();
}

/* ---- entries ------------------------------------------------------------- */

static CUresult create(const char *entry, CUstream *out, unsigned flags,
                       int priority)
{
    struct context *ctx;
    struct stream *s;
    CUresult rc = fake_enter(entry, NEED_CONTEXT | ALONE, &ctx);

    if (rc)
        return rc;
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    s = stream_new(ctx, !(flags & CU_STREAM_NON_BLOCKING));
    s->priority = priority;
    queue_add(s);
    *out = (CUstream)s;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    return create("cuStreamCreate", out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    return create("cuStreamCreateWithPriority", out, flags, priority);
}

CUresult cuStreamDestroy(CUstream handle)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamDestroy", ALONE, handle, &s);

    if (rc)
        return rc;
    if (s->is_legacy || handle == CU_STREAM_PER_THREAD)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    stream_destroy(s);
    return fake_leave(CUDA_SUCCESS);
}

/* PG, "Prohibited and Unhandled Operations": a stream that captures is neither asked
 * nor waited for; another one is an unsafe call. */
static CUresult may_look(struct stream *s)
{
    CUresult rc = stream_check(s);

    if (rc)
        return rc;
    if (s->capture) {
        if (s->capture->is_invalid)
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        capture_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return capture_allows();
}

/* Has it, and what it waits for, ended what was put before? */
static int is_past(const struct stream *s)
{
    if (!s->is_legacy)
        return stream_is_idle(s);
    for (const struct stream *t = s->ctx->streams; t; t = t->next)
        if (t->is_blocking && !stream_is_idle(t))
            return 0;
    return 1;
}

CUresult cuStreamQuery(CUstream handle)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamQuery", 0, handle, &s);

    if (rc)
        return rc;
    rc = may_look(s);
    if (!rc && !is_past(s))
        rc = CUDA_ERROR_NOT_READY;
    return fake_leave(rc);
}

static void wait_for(const struct stream *s)
{
    uint64_t last = s->last ? s->last->number : 0;

    while (s->first && s->first->number <= last)
        fake_wait();
}

void stream_wait(struct stream *s)
{
    if (s->is_legacy)
        while (!is_past(s))
            fake_wait();
    else
        wait_for(s);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamSynchronize", 0, handle, &s);

    if (rc)
        return rc;
    rc = may_look(s);
    if (!rc) {
        stream_wait(s);
        rc = fake_error();
    }
    return fake_leave(rc);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamGetFlags", 0, handle, &s);

    if (rc)
        return rc;
    *flags = s->is_blocking ? 0 : CU_STREAM_NON_BLOCKING;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamGetCtx", 0, handle, &s);

    if (rc)
        return rc;
    *out = (CUcontext)s->ctx;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *out)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamGetDevice", 0, handle, &s);

    if (rc)
        return rc;
    *out = s->ctx->device;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamGetId", 0, handle, &s);

    if (rc)
        return rc;
    *id = s->id;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *arg)
{
    struct work w = {.kind = W_HOST, .host = {.fn = fn, .arg = arg}};
    struct stream *s;
    CUresult rc = fake_enter_stream("cuLaunchHostFunc", 0, handle, &s);

    if (rc)
        return rc;
    return fake_leave(fn ? stream_put(s, &w) : CUDA_ERROR_INVALID_VALUE);
}

/* DA cuStreamAddCallback: not in a capture; flags must be 0. */
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback fn, void *arg,
                             unsigned flags)
{
    struct work w = {.kind = W_CALLBACK,
                     .host = {.callback = fn, .stream = handle, .arg = arg}};
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamAddCallback", 0, handle, &s);

    if (rc)
        return rc;
    if (!fn || flags)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (s->capture) {
        capture_invalidate(s->capture);
        return fake_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return fake_leave(stream_put(s, &w));
}
