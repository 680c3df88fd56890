/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_calls.c - one table of calls. */
#include "tests/gpu/driver_rules_calls.h"

#include <stdlib.h>
#include <string.h>

struct call_scene on;

static CUresult pointer_type(void *arg)
{
    unsigned type;

    (void)arg;
    return cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  on.mem[1]);
}

static CUresult mem_alloc(void *arg)
{
    CUdeviceptr at;

    (void)arg;
    return cu.MemAlloc(&at, 64 << 20);
}

static CUresult mem_free(void *arg)
{
    (void)arg;
    return cu.MemFree(on.mem[0]);
}

static CUresult host_alloc(void *arg)
{
    void *at;

    (void)arg;
    return cu.MemHostAlloc(&at, 1 << 20, 0);
}

static CUresult free_host(void *arg)
{
    (void)arg;
    return cu.MemFreeHost(on.pinned);
}

static CUresult host_register(void *arg)
{
    (void)arg;
    return cu.MemHostRegister(on.pages, 1 << 20, 0);
}

static CUresult host_unregister(void *arg)
{
    (void)arg;
    return cu.MemHostUnregister(on.pages);
}

static CUresult register_both(void *arg)
{
    CUresult rc = cu.MemHostRegister(on.pages, 1 << 20, 0);

    (void)arg;
    if (rc == CUDA_SUCCESS)
        rc = cu.MemHostUnregister(on.pages);
    return rc;
}

static CUresult module_load(void *arg)
{
    CUmodule module;

    (void)arg;
    return cu.ModuleLoadData(&module, gpu_ptx);
}

static CUresult mem_create(void *arg)
{
    CUmemAllocationProp prop = {0};
    CUmemGenericAllocationHandle handle;
    CUresult rc;

    (void)arg;
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    rc = cu.MemCreate(&handle, 2 << 20, &prop, 0);
    return rc == CUDA_SUCCESS ? cu.MemRelease(handle) : rc;
}

/* What was put there before may not have ended yet. */
static CUresult event_query(void *arg)
{
    CUresult rc;

    (void)arg;
    while ((rc = cu.EventQuery(on.event)) == CUDA_ERROR_NOT_READY)
        rest(1);
    return rc;
}

static CUresult event_synchronize(void *arg)
{
    (void)arg;
    return cu.EventSynchronize(on.event);
}

static CUresult event_record(void *arg)
{
    (void)arg;
    return cu.EventRecord(on.event, on.work);
}

static CUresult event_create(void *arg)
{
    CUevent e;
    CUresult rc = cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING);

    (void)arg;
    return rc == CUDA_SUCCESS ? cu.EventDestroy(e) : rc;
}

static CUresult stream_query(void *arg)
{
    CUresult rc;

    (void)arg;
    while ((rc = cu.StreamQuery(on.work)) == CUDA_ERROR_NOT_READY)
        rest(1);
    return rc;
}

static CUresult stream_synchronize(void *arg)
{
    (void)arg;
    return cu.StreamSynchronize(on.work);
}

static CUresult stream_create(void *arg)
{
    CUstream s;
    CUresult rc = cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING);

    (void)arg;
    return rc == CUDA_SUCCESS ? cu.StreamDestroy(s) : rc;
}

static CUresult stream_destroy(void *arg)
{
    (void)arg;
    return cu.StreamDestroy(on.other);
}

static CUresult stream_work(void *arg)
{
    (void)arg;
    return cu.MemsetD8Async(on.mem[1], 0, 8, on.work);
}

static CUresult stream_write(void *arg)
{
    (void)arg;
    return cu.StreamWriteValue32(on.work, on.mem[1], 1, 0);
}

static CUresult alloc_async(void *arg)
{
    CUdeviceptr at;

    (void)arg;
    return cu.MemAllocAsync(&at, 1 << 20, on.work);
}

static CUresult instantiate(void *arg)
{
    CUgraphExec exec;

    (void)arg;
    return cu.GraphInstantiateWithFlags(&exec, on.graph, 0);
}

static CUresult graph_launch(void *arg)
{
    (void)arg;
    return cu.GraphLaunch(on.exec, on.work);
}

static CUresult exec_destroy(void *arg)
{
    (void)arg;
    return cu.GraphExecDestroy(on.exec);
}

static CUresult ipc_get(void *arg)
{
    CUipcMemHandle handle;

    (void)arg;
    return cu.IpcGetMemHandle(&handle, on.mem[1]);
}

static CUresult ipc_open(void *arg)
{
    (void)arg;
    return cu.IpcOpenMemHandle(&on.imported, on.handle,
                               CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static CUresult ipc_close(void *arg)
{
    (void)arg;
    return cu.IpcCloseMemHandle(on.imported);
}

static CUresult copy_sync(void *arg)
{
    int x = 0;

    (void)arg;
    return cu.MemcpyHtoD(on.mem[1], &x, sizeof(x));
}

static CUresult read_sync(void *arg)
{
    int x;

    (void)arg;
    return cu.MemcpyDtoH(&x, on.mem[1], sizeof(x));
}

static CUresult set_sync(void *arg)
{
    (void)arg;
    return cu.MemsetD8(on.mem[1], 0, 8);
}

static CUresult mem_info(void *arg)
{
    size_t a, b;

    (void)arg;
    return cu.MemGetInfo(&a, &b);
}

static CUresult device_ask(void *arg)
{
    int x;

    (void)arg;
    return cu.DeviceGetAttribute(&x, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
}

static CUresult pool_ask(void *arg)
{
    cuuint64_t value;

    (void)arg;
    return cu.MemPoolGetAttribute(on.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                  &value);
}

static CUresult set_current(void *arg)
{
    (void)arg;
    return cu.CtxSetCurrent(on.ctx);
}

static CUresult ctx_sync(void *arg)
{
    (void)arg;
    return cu.CtxSynchronize();
}

/* In this order: some need what an earlier one has done.
 *
 * Expected before: behind a wait all but cuCtxSynchronize return; a capture forbids
 * cuModuleLoadData, cuMemcpyHtoD and cuMemsetD8, and allows cuGraphInstantiate,
 * cuMemAllocAsync and cuMemPoolGetAttribute.  An H100 (driver 580.159) answers as
 * the table says; and an H200 of 580.159 what comes back beside a copy of pageable
 * memory. */
const struct rule_call rule_calls[] = {
    {"cuPointerGetAttribute", RETURNS, RETURNS, ALLOWED, pointer_type},
    {"cuMemAlloc of 64 MiB", RETURNS, BLOCKS, UNSAFE, mem_alloc},
    {"cuMemFree", BLOCKS, BLOCKS, UNSAFE, mem_free},
    {"cuMemHostAlloc", RETURNS, BLOCKS, UNSAFE, host_alloc},
    {"cuMemFreeHost", BLOCKS, BLOCKS, NOT_CAPTURED, free_host},
    {"cuMemHostRegister", RETURNS, BLOCKS, NOT_CAPTURED, host_register},
    {"cuMemHostUnregister", BLOCKS, BLOCKS, NOT_CAPTURED, host_unregister},
    {"cuMemHostRegister, and undone", NOT_BEHIND, BLOCKS, UNSAFE,
     register_both},
    {"cuMemCreate", NOT_BEHIND, RETURNS, ALLOWED, mem_create},
    {"cuModuleLoadData", BLOCKS, BLOCKS, ALLOWED, module_load},
    {"cuEventQuery of another event", NOT_BEHIND, RETURNS, UNSAFE, event_query},
    {"cuEventSynchronize of another event", NOT_BEHIND, RETURNS, UNSAFE,
     event_synchronize},
    {"cuEventRecord in another stream", NOT_BEHIND, RETURNS, ALLOWED,
     event_record},
    {"cuEventCreate", RETURNS, BLOCKS, ALLOWED, event_create},
    {"cuStreamQuery of another stream", NOT_BEHIND, RETURNS, UNSAFE,
     stream_query},
    {"cuStreamSynchronize of another stream", NOT_BEHIND, RETURNS, UNSAFE,
     stream_synchronize},
    {"cuStreamCreate", RETURNS, BLOCKS, ALLOWED, stream_create},
    {"cuStreamDestroy of another stream", RETURNS, BLOCKS, NOT_CAPTURED,
     stream_destroy},
    {"cuMemsetD8Async in another stream", NOT_BEHIND, RETURNS, ALLOWED,
     stream_work},
    {"cuStreamWriteValue32 in another stream", NOT_BEHIND, RETURNS, ALLOWED,
     stream_write},
    {"cuIpcGetMemHandle", RETURNS, RETURNS, ALLOWED, ipc_get},
    {"cuIpcOpenMemHandle", RETURNS, RETURNS, NOT_CAPTURED, ipc_open},
    {"cuIpcCloseMemHandle", BLOCKS, BLOCKS, NOT_CAPTURED, ipc_close},
    {"cuGraphInstantiate", RETURNS, BLOCKS, UNSAFE, instantiate},
    {"cuGraphLaunch behind the wait, beside the capture", RETURNS, RETURNS,
     ALLOWED, graph_launch},
    {"cuGraphExecDestroy of it", RETURNS, BLOCKS, NOT_CAPTURED, exec_destroy},
    {"cuMemAllocAsync behind the wait, beside the capture", RETURNS, RETURNS,
     UNSAFE, alloc_async},
    {"cuMemcpyHtoD of pageable memory", RETURNS, BLOCKS, ALLOWED, copy_sync},
    {"cuMemcpyDtoH of pageable memory", RETURNS, BLOCKS, NOT_CAPTURED,
     read_sync},
    {"cuMemsetD8", NOT_BEHIND, BLOCKS, ALLOWED, set_sync},
    {"cuMemGetInfo", NOT_BEHIND, RETURNS, ALLOWED, mem_info},
    {"cuDeviceGetAttribute", NOT_BEHIND, RETURNS, ALLOWED, device_ask},
    {"cuMemPoolGetAttribute", NOT_BEHIND, RETURNS, UNSAFE, pool_ask},
    {"cuCtxSetCurrent", NOT_BEHIND, RETURNS, ALLOWED, set_current},
    {"cuCtxSynchronize", BLOCKS, BLOCKS, FORBIDDEN, ctx_sync},
};
const size_t n_rule_calls = ARRAY_LEN(rule_calls);

void calls_prepare(void)
{
    CUstream s;

    on.ctx = start();
    on.work = new_stream();
    on.other = new_stream();
    for (size_t i = 0; i < ARRAY_LEN(on.mem); i++)
        on.mem[i] = new_memory(16 << 20);
    MUST(cu.EventCreate(&on.event, CU_EVENT_DISABLE_TIMING));
    MUST(cu.DeviceGetDefaultMemPool(&on.pool, 0));
    MUST(cu.MemHostAlloc(&on.pinned, 1 << 20, 0));
    on.pages = aligned_alloc(4096, 1 << 20);
    memset(on.pages, 0, 1 << 20);
    s = new_stream();
    MUST(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cu.MemsetD8Async(on.mem[2], 0, 64, s));
    MUST(cu.StreamEndCapture(s, &on.graph));
    MUST(cu.GraphInstantiateWithFlags(&on.exec, on.graph, 0));
}
