/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c - contexts, and which one is a thread's current one.
 *
 * DA, "Context Management": each thread has a stack of contexts, the top is current.
 * DA, "Primary Context Management": one per device, counted, the same handle for the
 * process' life.
 */
#include "tests/fake_cuda/fake.h"

enum { DEPTH = 64 };
static __thread struct context *stack[DEPTH];
static __thread int depth;

/* DA: INVALID_CONTEXT without one, CONTEXT_IS_DESTROYED when it has gone. */
struct context *context_current(CUresult *rc)
{
    struct context *ctx = depth ? stack[depth - 1] : NULL;

    *rc = !ctx           ? CUDA_ERROR_INVALID_CONTEXT
          : ctx->is_live ? CUDA_SUCCESS
                         : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return ctx;
}

static int push(struct context *ctx)
{
    if (depth == DEPTH)
        return -1;
    stack[depth++] = ctx;
    return 0;
}

static struct context *context_new(int device)
{
    struct context *ctx = object_new(CONTEXT, sizeof(*ctx));

    ctx->device = device;
    ctx->id = fake_next_id();
    ctx->is_live = 1;
    ctx->legacy = stream_new(ctx, 1);
    queue_add_legacy(ctx->legacy);
    return ctx;
}

void context_drain(struct context *ctx)
{
    int is_busy;

    do {
        is_busy = 0;
        for (struct stream *s = ctx->streams; s; s = s->next)
            is_busy |= !stream_is_idle(s);
        if (is_busy)
            fake_wait();
    } while (is_busy);
}

/* DA cuCtxDestroy, cuDevicePrimaryCtxReset: all of the context's resources go; it
 * waits for its streams (H100, queue/reset_while_waiting). */
void context_end(struct context *ctx)
{
    struct region *r;

    context_drain(ctx);
    for (int i = 0; (r = region_each(i));)
        if (r->ctx == ctx)
            region_remove(r);
        else
            i++;
    while (ctx->streams)
        stream_destroy(ctx->streams);
    ctx->legacy = NULL;
    ctx->is_live = 0;
}

/* ---- the thread's stack -------------------------------------------------- */

CUresult cuCtxGetCurrent(CUcontext *out)
{
    CUresult rc = fake_enter("cuCtxGetCurrent", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!out)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *out = depth ? (CUcontext)stack[depth - 1] : NULL;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuCtxSetCurrent: "If there exists a CUDA context stack on the calling CPU
 * thread, this will replace the top of that stack"; NULL pops it. */
CUresult cuCtxSetCurrent(CUcontext handle)
{
    CUresult rc = fake_enter("cuCtxSetCurrent", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!handle) {
        depth -= depth > 0;
        return fake_leave(CUDA_SUCCESS);
    }
    depth -= depth > 0;
    push(object_of(handle, CONTEXT, "cuCtxSetCurrent"));
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent(CUcontext handle)
{
    CUresult rc = fake_enter("cuCtxPushCurrent", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!handle)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (push(object_of(handle, CONTEXT, "cuCtxPushCurrent")))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    return fake_leave(rc);
}

CUresult cuCtxPopCurrent(CUcontext *out)
{
    CUresult rc = fake_enter("cuCtxPopCurrent", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!depth)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (out)
        *out = (CUcontext)stack[depth];
    return fake_leave(CUDA_SUCCESS);
}

/* A destroyed one still tells its device (H100, context/released). */
CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult rc = fake_enter("cuCtxGetDevice", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!depth)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (!device)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *device = stack[depth - 1]->device;
    return fake_leave(CUDA_SUCCESS);
}

/* A capture in the context forbids it in each mode (H100, unsafe/relaxed_self; PG,
 * "Prohibited and Unhandled Operations"). */
static CUresult synchronize(struct context *ctx)
{
    CUresult rc = ctx->is_live ? capture_allows_context(ctx)
                               : CUDA_ERROR_CONTEXT_IS_DESTROYED;

    if (rc)
        return rc;
    context_drain(ctx);
    return fake_error();
}

/* DA cuCtxGetId: "unique for the life of the program"; of NULL, the current one's. */
CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct context *ctx;
    CUresult rc = fake_enter("cuCtxGetId", handle ? 0 : NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    if (!id)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (handle)
        ctx = object_of(handle, CONTEXT, "cuCtxGetId");
    *id = ctx->id;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void)
{
    struct context *ctx;
    CUresult rc = fake_enter("cuCtxSynchronize", NEED_CONTEXT, &ctx);

    return rc ? rc : fake_leave(synchronize(ctx));
}

/* As they are since 13.0: of any context, NULL is the current one. */
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    CUresult rc;

    if (!handle)
        return cuCtxGetDevice(device);
    rc = fake_enter("cuCtxGetDevice", IN_ERROR, NULL);
    if (rc)
        return rc;
    if (!device)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *device = ((struct context *)object_of(handle, CONTEXT, "cuCtxGetDevice"))
                  ->device;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
    struct context *ctx;
    CUresult rc;

    if (!handle)
        return cuCtxSynchronize();
    rc = fake_enter("cuCtxSynchronize", 0, NULL);
    if (rc)
        return rc;
    ctx = object_of(handle, CONTEXT, "cuCtxSynchronize");
    return fake_leave(synchronize(ctx));
}

/* ---- made and destroyed -------------------------------------------------- */

CUresult cuCtxCreate(CUcontext *out, CUctxCreateParams *params, unsigned flags,
                     CUdevice device)
{
    CUresult rc = fake_enter("cuCtxCreate", 0, NULL);
    struct context *ctx;

    (void)params;
    if (rc)
        return rc;
    if (device < 0 || device >= device_count())
        return fake_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!out)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    ctx = context_new(device);
    ctx->flags = flags;
    push(ctx);
    *out = (CUcontext)ctx;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuCtxDestroy: popped where the calling thread has it on top; current elsewhere
 * it stays there, destroyed. */
CUresult cuCtxDestroy(CUcontext handle)
{
    CUresult rc = fake_enter("cuCtxDestroy", IN_ERROR, NULL);
    struct context *ctx;

    if (rc)
        return rc;
    if (!handle)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    ctx = object_of(handle, CONTEXT, "cuCtxDestroy");
    if (ctx->is_primary || !ctx->is_live)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    context_end(ctx);
    if (depth && stack[depth - 1] == ctx)
        depth--;
    return fake_leave(CUDA_SUCCESS);
}

static CUresult device_of(CUdevice device, struct device **d)
{
    if (device < 0 || device >= device_count())
        return CUDA_ERROR_INVALID_DEVICE;
    *d = device_at(device);
    return CUDA_SUCCESS;
}

/* DA cuDevicePrimaryCtxRetain: it is not made current. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult rc = fake_enter("cuDevicePrimaryCtxRetain", 0, NULL);
    struct context *ctx;
    struct device *d;

    if (rc)
        return rc;
    rc = out ? device_of(device, &d) : CUDA_ERROR_INVALID_VALUE;
    if (rc)
        return fake_leave(rc);
    if (!d->primary) {
        d->primary = context_new(device);
        d->primary->is_primary = 1;
    }
    ctx = d->primary;
    if (!ctx->is_live) {
        ctx->is_live = 1;
        ctx->id = fake_next_id();
        ctx->legacy = stream_new(ctx, 1);
        queue_add_legacy(ctx->legacy);
    }
    ctx->n_retained++;
    *out = (CUcontext)ctx;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuDevicePrimaryCtxRelease: INVALID_CONTEXT when nobody has retained it; the
 * last release resets it, and pops it from no thread. */
CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult rc = fake_enter("cuDevicePrimaryCtxRelease", IN_ERROR, NULL);
    struct device *d;

    if (rc)
        return rc;
    rc = device_of(device, &d);
    if (rc)
        return fake_leave(rc);
    if (!d->primary || !d->primary->n_retained)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (--d->primary->n_retained == 0 && d->primary->is_live)
        context_end(d->primary);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    CUresult rc = fake_enter("cuDevicePrimaryCtxReset", IN_ERROR, NULL);
    struct device *d;

    if (rc)
        return rc;
    rc = device_of(device, &d);
    if (!rc && d->primary && d->primary->is_live)
        context_end(d->primary);
    return fake_leave(rc);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                    int *is_active)
{
    CUresult rc = fake_enter("cuDevicePrimaryCtxGetState", IN_ERROR, NULL);
    struct device *d;

    if (rc)
        return rc;
    rc = flags && is_active ? device_of(device, &d) : CUDA_ERROR_INVALID_VALUE;
    if (!rc) {
        *flags = 0;
        *is_active = d->primary && d->primary->is_live;
    }
    return fake_leave(rc);
}

/* DA cuCtxEnablePeerAccess: one way; a context of the same device is unsupported
 * (H100, init/peers, where INVALID_CONTEXT is documented). */
CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags)
{
    struct context *ctx, *peer;
    CUresult rc = fake_enter("cuCtxEnablePeerAccess", NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    if (!handle)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    peer = object_of(handle, CONTEXT, "cuCtxEnablePeerAccess");
    if (flags)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (!peer->is_live)
        rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else if (!device_peers(ctx->device, peer->device))
        rc = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    else if (ctx->peers & 1u << peer->device)
        rc = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    else
        ctx->peers |= 1u << peer->device;
    return fake_leave(rc);
}

CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
    struct context *ctx, *peer;
    CUresult rc = fake_enter("cuCtxDisablePeerAccess", NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    peer = object_of(handle, CONTEXT, "cuCtxDisablePeerAccess");
    if (!(ctx->peers & 1u << peer->device))
        return fake_leave(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    ctx->peers &= ~(1u << peer->device);
    return fake_leave(CUDA_SUCCESS);
}
