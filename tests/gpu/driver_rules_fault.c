/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_fault.c - errors of the device, which stay. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>

static CUfunction store, stop;
static CUdeviceptr mem;
static CUstream a, b;

static void prepare(void)
{
    start();
    store = gpu_kernel("store");
    stop = gpu_kernel("stop");
    if (!store || !stop)
        cannot("the driver does not compile the kernels");
    mem = new_memory(4096);
    a = new_stream();
    b = new_stream();
}

static void write_to(CUdeviceptr at)
{
    unsigned one = 1;

    must("cuLaunchKernel", gpu_launch(store, 1, 1, a, (void *[]){&at, &one}));
}

/* Every call answers the same from now on. */
static void stays(CUresult code)
{
    CUdeviceptr at;
    CUevent e;
    CUstream s;
    CUipcMemHandle handle;
    CUcontext ctx = NULL;
    unsigned type;
    void *host;
    int x;

    want_code("cuStreamSynchronize", code, cu.StreamSynchronize(a));
    want_code("cuStreamQuery of another stream", code, cu.StreamQuery(b));
    want_code("cuCtxSynchronize", code, cu.CtxSynchronize());
    want_code("cuMemAlloc", code, cu.MemAlloc(&at, 64));
    want_code("cuStreamCreate", code, cu.StreamCreate(&s, 0));
    want_code("cuEventCreate", code, cu.EventCreate(&e, 0));
    want_code("cuMemHostAlloc", code, cu.MemHostAlloc(&host, 64, 0));
    want_code("cuMemcpyDtoH", code, cu.MemcpyDtoH(&x, mem, 4));
    want_code("cuStreamWriteValue32", code,
              cu.StreamWriteValue32(b, mem, 1, 0));
    want_code("cuIpcGetMemHandle", code, cu.IpcGetMemHandle(&handle, mem));
    want_code("cuMemFree", code, cu.MemFree(mem));
    want_code("cuStreamDestroy", code, cu.StreamDestroy(b));
    GOOD(cu.CtxGetCurrent(&ctx));
    want_true("the context is still current", ctx != NULL);
    seen("cuPointerGetAttribute", "%s",
         gpu_code(cu.PointerGetAttribute(
             &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mem)));
}

static void illegal_address(void)
{
    CUcontext other = NULL; /* unset on the H100, whose driver died of it below */
    CUdeviceptr at;

    prepare();
    write_to(0x10);
    stays(CUDA_ERROR_ILLEGAL_ADDRESS);
    seen("cuCtxCreate of another context", "%s",
         gpu_code(cu.CtxCreate(&other, NULL, 0, 0)));
    seen("cuDevicePrimaryCtxReset", "%s",
         gpu_code(cu.DevicePrimaryCtxReset(0)));
    seen("cuDevicePrimaryCtxRetain then", "%s",
         gpu_code(cu.DevicePrimaryCtxRetain(&other, 0)));
    cu.CtxSetCurrent(other);
    seen("cuMemAlloc then", "%s", gpu_code(cu.MemAlloc(&at, 64)));
}

static void misaligned(void)
{
    prepare();
    write_to(mem + 1);
    stays(CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void trap(void)
{
    prepare();
    MUST(gpu_launch(stop, 1, 1, a, NULL));
    stays(CUDA_ERROR_LAUNCH_FAILED);
}

/* A pointer of the host that nobody registered. */
static void plain_host(void)
{
    uint32_t *word = calloc(1, 4096);
    int pageable = 0;

    prepare();
    cu.DeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                          0);
    seen("PAGEABLE_MEMORY_ACCESS", "%d", pageable);
    write_to((CUdeviceptr)word);
    want_code("a kernel writes to malloc'ed memory",
              pageable ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS,
              cu.CtxSynchronize());
    want_number("what the host reads", pageable, *word);
}

static atomic_int fn_calls, callback_calls;
static CUresult callback_status = 12345;

static void host_fn(void *arg)
{
    (void)arg;
    atomic_fetch_add(&fn_calls, 1);
}

static void callback(CUstream s, CUresult status, void *arg)
{
    (void)s;
    (void)arg;
    callback_status = status;
    atomic_fetch_add(&callback_calls, 1);
}

static void functions_skipped(void)
{
    struct words w;
    struct gate gate;
    CUevent e;

    prepare();
    w = new_words(1);
    MUST(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    gate = gate_shut(a);
    write_to(0x10);
    GOOD(cu.LaunchHostFunc(a, host_fn, NULL));
    GOOD(cu.StreamAddCallback(a, callback, NULL, 0));
    GOOD(cu.StreamWriteValue32(a, w.dev, 1, 0));
    GOOD(cu.EventRecord(e, a));
    gate_open(&gate);
    WANT(ILLEGAL_ADDRESS, cu.CtxSynchronize());
    rest(300);
    want_number("functions of cuLaunchHostFunc called", 0,
                atomic_load(&fn_calls));
    want_number("callbacks of cuStreamAddCallback called", 1,
                atomic_load(&callback_calls));
    seen("with", "%s", gpu_code(callback_status));
    seen("the write behind the fault was done", "%u", *w.host);
    WANT(ILLEGAL_ADDRESS, cu.EventQuery(e));
}

/* A stream that waits for a peer learns of a fault by asking, not by going on. */
static void waiter_learns(void)
{
    struct words w;
    double began = gpu_now();
    struct gate gate;
    CUresult rc;

    prepare();
    w = new_words(1);
    gate = gate_shut(b);
    GOOD(cu.StreamWriteValue32(b, w.dev, 1, 0));
    write_to(0x10);
    do {
        rc = cu.StreamQuery(b);
    } while (rc == CUDA_ERROR_NOT_READY && gpu_now() - began < 5);
    want_code("the waiting stream's query", CUDA_ERROR_ILLEGAL_ADDRESS, rc);
    gate_open(&gate);
    seen("what waited was done after all", "%d", becomes(w.host, 1, 200));
}

static void part_bystander(int talk)
{
    CUdeviceptr at;

    start();
    at = new_memory(64);
    tell_word(talk, 1);
    hear_word(talk);
    tell_word(talk, (int)cu.MemsetD8(at, 0, 64));
    tell_word(talk, (int)cu.CtxSynchronize());
}

static void other_process(void)
{
    struct part_run run = part_start("bystander", NULL);

    hear_word(run.talk);
    prepare();
    write_to(0x10);
    WANT(ILLEGAL_ADDRESS, cu.CtxSynchronize());
    tell_word(run.talk, 1);
    want_number("another process sets memory", 0, hear_word(run.talk));
    want_number("and synchronizes", 0, hear_word(run.talk));
}

#define AREA "fault"
static const struct rule rules[] = {
    {AREA, "illegal_address", "DA CUDA_ERROR_ILLEGAL_ADDRESS",
     "after it every call of the process answers it", illegal_address},
    {AREA, "misaligned", "DA CUDA_ERROR_MISALIGNED_ADDRESS",
     "after it every call of the process answers it", misaligned},
    {AREA, "trap", "DA CUDA_ERROR_LAUNCH_FAILED; PTX ISA trap",
     "after a trap every call of the process answers LAUNCH_FAILED", trap},
    {AREA, "plain_host", "DA CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS",
     "host memory nobody registered is a fault, unless the attribute says no",
     plain_host},
    {AREA, "functions_skipped", "DA cuLaunchHostFunc, cuStreamAddCallback",
     "after a fault functions are not called, callbacks are",
     functions_skipped},
    {AREA, "waiter_learns", "DA cuStreamQuery",
     "a stream that waits answers with the fault of another", waiter_learns},
    {AREA, "other_process", "MPS guide",
     "without MPS a fault stays in its process", other_process},
};
static const struct part parts[] = {{"bystander", part_bystander}};
const struct rule_file rules_fault = {rules, ARRAY_LEN(rules), parts,
                                      ARRAY_LEN(parts)};
