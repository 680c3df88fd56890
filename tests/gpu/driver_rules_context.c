/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_context.c - contexts: of threads, retained, destroyed, absent. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>

static void none(void)
{
    CUcontext ctx = (CUcontext)1;
    CUdeviceptr at;
    CUstream s;
    CUevent e;
    CUdevice device;
    void *host;

    MUST(cu.Init(0));
    GOOD(cu.CtxGetCurrent(&ctx));
    want_true("the current context is NULL", ctx == NULL);
    WANT(INVALID_CONTEXT, cu.CtxGetDevice(&device));
    WANT(INVALID_CONTEXT, cu.MemAlloc(&at, 8));
    WANT(INVALID_CONTEXT, cu.MemHostAlloc(&host, 8, 0));
    WANT(INVALID_CONTEXT, cu.StreamCreate(&s, 0));
    WANT(INVALID_CONTEXT, cu.EventCreate(&e, 0));
    WANT(INVALID_CONTEXT, cu.StreamSynchronize(NULL));
    WANT(INVALID_CONTEXT, cu.StreamQuery(NULL));
    WANT(INVALID_CONTEXT, cu.CtxSynchronize());
    GOOD(cu.CtxSetCurrent(NULL));
    WANT(INVALID_CONTEXT, cu.CtxPopCurrent(&ctx));
    seen("cuMemFree(0) without a context", "%s", gpu_code(cu.MemFree(0)));
}

static void *look(void *arg)
{
    cu.CtxGetCurrent(arg);
    return NULL;
}

static void per_thread(void)
{
    CUcontext ctx = start(), other = (CUcontext)1;
    pthread_t thread;

    pthread_create(&thread, NULL, look, &other);
    pthread_join(thread, NULL);
    want_true("a new thread has no context", other == NULL);
    GOOD(cu.CtxGetCurrent(&other));
    want_true("the first thread keeps its own", other == ctx);
}

static void retain(void)
{
    CUcontext a = NULL, b = NULL, now = (CUcontext)1;
    unsigned flags;
    int active = -1;

    MUST(cu.Init(0));
    WANT(INVALID_CONTEXT, cu.DevicePrimaryCtxRelease(0));
    MUST(cu.DevicePrimaryCtxRetain(&a, 0));
    GOOD(cu.CtxGetCurrent(&now));
    want_true("retaining makes nothing current", now == NULL);
    MUST(cu.DevicePrimaryCtxRetain(&b, 0));
    want_true("retaining twice gives one context", a == b);
    GOOD(cu.DevicePrimaryCtxRelease(0));
    GOOD(cu.DevicePrimaryCtxGetState(0, &flags, &active));
    want_number("active after one of two releases", 1, active);
    GOOD(cu.DevicePrimaryCtxRelease(0));
    GOOD(cu.DevicePrimaryCtxGetState(0, &flags, &active));
    want_number("active after both", 0, active);
    WANT(INVALID_CONTEXT, cu.DevicePrimaryCtxRelease(0));
}

static void released(void)
{
    CUcontext ctx = start(), now = NULL;
    CUdeviceptr at;
    CUstream s;
    CUdevice device;

    GOOD(cu.DevicePrimaryCtxRelease(0));
    GOOD(cu.CtxGetCurrent(&now));
    want_true("the thread still names it", now == ctx);
    WANT(CONTEXT_IS_DESTROYED, cu.MemAlloc(&at, 8));
    WANT(CONTEXT_IS_DESTROYED, cu.StreamCreate(&s, 0));
    WANT(CONTEXT_IS_DESTROYED, cu.CtxSynchronize());
    seen("cuCtxGetDevice", "%s", gpu_code(cu.CtxGetDevice(&device)));
    MUST(cu.DevicePrimaryCtxRetain(&ctx, 0));
    want_true("retained again it is the same handle", now == ctx);
    GOOD(cu.MemAlloc(&at, 8));
}

static void reset(void)
{
    CUdeviceptr at;

    start();
    at = new_memory(64);
    GOOD(cu.DevicePrimaryCtxReset(0));
    WANT(CONTEXT_IS_DESTROYED, cu.MemAlloc(&at, 8));
    WANT(CONTEXT_IS_DESTROYED, cu.CtxSynchronize());
}

static CUcontext make(void)
{
    CUcontext ctx = NULL;

    must("cuCtxCreate", cu.CtxCreate(&ctx, NULL, 0, 0));
    return ctx;
}

static void set_null(void)
{
    CUcontext a = start(), b = make(), now = NULL;

    GOOD(cu.CtxGetCurrent(&now));
    want_true("a created context is current", now == b);
    GOOD(cu.CtxSetCurrent(NULL));
    GOOD(cu.CtxGetCurrent(&now));
    want_true("setting NULL pops the top: the one below shows", now == a);
    GOOD(cu.CtxSetCurrent(NULL));
    GOOD(cu.CtxGetCurrent(&now));
    want_true("and again: none", now == NULL);
    GOOD(cu.CtxSetCurrent(NULL));
    GOOD(cu.CtxPushCurrent(a));
    GOOD(cu.CtxSetCurrent(b));
    GOOD(cu.CtxPopCurrent(&now));
    want_true("setting replaces the top", now == b);
    GOOD(cu.CtxGetCurrent(&now));
    want_true("nothing is below it", now == NULL);
}

static CUresult destroy(void *arg) { return cu.CtxDestroy(arg); }

static void destroyed(void)
{
    CUcontext ctx, now = NULL;
    CUdeviceptr at;
    struct later l;

    MUST(cu.Init(0));
    ctx = make();
    later_start(&l, destroy, ctx);
    want_code("cuCtxDestroy in another thread", CUDA_SUCCESS, later_join(&l));
    WANT(CONTEXT_IS_DESTROYED, cu.MemAlloc(&at, 8));
    GOOD(cu.CtxSetCurrent(NULL));
    ctx = make();
    GOOD(cu.CtxDestroy(ctx));
    GOOD(cu.CtxGetCurrent(&now));
    want_true("destroyed by its own thread it is popped", now == NULL);
}

/* What a progress thread may do that has forgotten its context. */
static void stream_without(void)
{
    struct words w;
    CUdeviceptr at;
    CUstream s;
    CUevent e;

    start();
    w = new_words(4);
    at = new_memory(64);
    s = new_stream();
    MUST(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cu.CtxSetCurrent(NULL));
    GOOD(cu.StreamQuery(s));
    GOOD(cu.EventRecord(e, s));
    while (cu.EventQuery(e) == CUDA_ERROR_NOT_READY)
        rest(1);
    GOOD(cu.EventQuery(e));
    GOOD(cu.StreamWaitEvent(s, e, 0));
    GOOD(cu.StreamWriteValue32(s, w.dev, 1, 0));
    GOOD(cu.StreamWaitValue32(s, w.dev, 1, CU_STREAM_WAIT_VALUE_GEQ));
    GOOD(cu.MemcpyDtoDAsync(at, at + 32, 8, s));
    GOOD(cu.MemcpyDtoHAsync((void *)w.host, at, 8, s));
    GOOD(cu.MemsetD8Async(at, 0, 8, s));
    GOOD(cu.StreamSynchronize(s));
    GOOD(cu.EventDestroy(e));
    GOOD(cu.StreamDestroy(s));
    GOOD(cu.MemFree(at));
}

static void two_contexts(void)
{
    CUcontext a = start();
    CUstream sa = new_stream(), sb;
    CUdeviceptr at = new_memory(64);
    CUevent ea;
    struct gate gate;

    MUST(cu.EventCreate(&ea, CU_EVENT_DISABLE_TIMING));
    make();
    sb = new_stream();
    gate = gate_shut(sa);
    MUST(cu.EventRecord(ea, sa));
    WANT(INVALID_HANDLE, cu.EventRecord(ea, sb));
    GOOD(cu.StreamWaitEvent(sb, ea, 0));
    WANT(NOT_READY, cu.StreamQuery(sb));
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(sb));
    GOOD(cu.MemcpyDtoDAsync(at, at + 32, 8, sa));
    GOOD(cu.StreamSynchronize(sa));
    seen("a copy of a's memory on b's stream", "%s",
         gpu_code(cu.MemcpyDtoDAsync(at, at + 32, 8, sb)));
    GOOD(cu.StreamSynchronize(sb));
    GOOD(cu.CtxSetCurrent(a));
}

static void kernel_of_other(void)
{
    CUcontext a = start();
    CUfunction f = gpu_kernel("add_one");
    CUdeviceptr at = new_memory(64);
    CUstream sb;
    void *args[] = {&at};

    make();
    sb = new_stream();
    WANT(INVALID_HANDLE, gpu_launch(f, 1, 1, sb, args));
    GOOD(cu.CtxSetCurrent(a));
    GOOD(gpu_launch(f, 1, 1, NULL, args));
    GOOD(cu.CtxSynchronize());
}

#define AREA "context"
static const struct rule rules[] = {
    {AREA, "none", "DA 'Context Management'",
     "without a current context calls answer INVALID_CONTEXT", none},
    {AREA, "per_thread", "DA 'Context Management'",
     "the current context is the thread's", per_thread},
    {AREA, "retain", "DA 'Primary Context Management'",
     "the primary context is counted, and retaining makes nothing current",
     retain},
    {AREA, "released", "DA cuDevicePrimaryCtxRelease",
     "the last release destroys the context of whoever still uses it",
     released},
    {AREA, "reset", "DA cuDevicePrimaryCtxReset",
     "after a reset the thread's context is destroyed", reset},
    {AREA, "set_null", "DA cuCtxSetCurrent",
     "setting replaces the top of the thread's stack, NULL pops it", set_null},
    {AREA, "destroyed", "DA cuCtxDestroy",
     "a context destroyed elsewhere is CONTEXT_IS_DESTROYED", destroyed},
    {AREA, "stream_without", "DA 'Stream Management'",
     "a stream knows its context: work on it needs none current",
     stream_without},
    {AREA, "two_contexts", "DA cuEventRecord, cuStreamWaitEvent",
     "events are recorded in their own context and waited for in any",
     two_contexts},
    {AREA, "kernel_of_other", "DA cuLaunchKernel",
     "a kernel runs in streams of its own context", kernel_of_other},
};
const struct rule_file rules_context = {rules, ARRAY_LEN(rules), NULL, 0};
