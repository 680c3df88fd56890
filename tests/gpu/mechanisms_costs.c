/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms_costs.c - what it costs to launch a graph, to share memory, to start. */
#include "tests/gpu/mechanisms.h"

#include <stdlib.h>
#include <string.h>

enum { TIMES = 50 };

/* n nodes: write a flag, wait for it, copy 64 bytes, and again. */
static void plan(struct rank *r, CUstream s, int n)
{
    CUdeviceptr flag = device_flag(r, r->rank, r->rank, 0);
    CUdeviceptr slot = slot_of(r, r->rank, r->rank);

    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            TRY(cu.StreamWriteValue32(s, flag, 1, 0));
        else if (i % 3 == 1)
            TRY(cu.StreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
        else
            TRY(cu.MemcpyDtoDAsync(slot, slot + 64, 64, s));
    }
}

static CUgraphExec instantiate(struct rank *r, int n)
{
    double began = gpu_now();
    CUgraphExec exec;
    CUgraph graph;

    TRY(cu.StreamBeginCapture(r->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    plan(r, r->s, n);
    TRY(cu.StreamEndCapture(r->s, &graph));
    figure_add(r, "us", 1e6 * (gpu_now() - began), "%d nodes: capture", n);
    began = gpu_now();
    TRY(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    figure_add(r, "us", 1e6 * (gpu_now() - began), "%d nodes: instantiate", n);
    TRY(cu.GraphUpload(exec, r->s));
    TRY(cu.StreamSynchronize(r->s));
    return exec;
}

static void graphs(struct rank *r)
{
    static const int counts[] = {8, 64, 256};

    rank_start(r);
    for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
        double host[2][TIMES], whole[2][TIMES];
        CUgraphExec exec = instantiate(r, counts[c]);

        for (int i = 0; i < 2 * TIMES; i++) {
            double began = gpu_now();

            if (i % 2)
                plan(r, r->s, counts[c]);
            else
                TRY(cu.GraphLaunch(exec, r->s));
            host[i % 2][i / 2] = gpu_now() - began;
            TRY(cu.StreamSynchronize(r->s));
            whole[i % 2][i / 2] = gpu_now() - began;
        }
        for (int i = 0; i < 2; i++) {
            const char *how = i ? "enqueued one by one" : "launched as a graph";

            figure_add(r, "us", 1e6 * median_of(host[i], TIMES),
                       "%d nodes %s, the host", counts[c], how);
            figure_add(r, "us", 1e6 * median_of(whole[i], TIMES),
                       "%d nodes %s, until done", counts[c], how);
        }
    }
}

/* Rank 1 owns 8 allocations; rank 0 opens and closes them. */
static void handles(struct rank *r)
{
    static CUipcMemHandle all[8];
    double get[8], open[8], again[8], touch[8], close[8];
    CUdeviceptr at[8], twice;

    rank_start(r);
    for (int i = 0; i < 8; i++) {
        double began;

        if (r->rank == 1) {
            TRY(cu.MemAlloc(&at[0], (size_t)64 << 20));
            began = gpu_now();
            TRY(cu.IpcGetMemHandle(&all[i], at[0]));
            get[i] = gpu_now() - began;
            r->share->handles[2] = all[i];
        }
        rank_barrier(r);
        if (r->rank == 0) {
            began = gpu_now();
            TRY(cu.IpcOpenMemHandle(&at[i], r->share->handles[2],
                                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            open[i] = gpu_now() - began;
            began = gpu_now();
            TRY(cu.IpcOpenMemHandle(&twice, r->share->handles[2],
                                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            again[i] = gpu_now() - began;
            TRY(cu.IpcCloseMemHandle(twice));
            began = gpu_now();
            TRY(cu.MemcpyDtoDAsync(r->area, at[i], 64, r->s));
            TRY(cu.StreamSynchronize(r->s));
            touch[i] = gpu_now() - began;
            began = gpu_now();
            TRY(cu.IpcCloseMemHandle(at[i]));
            close[i] = gpu_now() - began;
        }
        rank_barrier(r);
    }
    if (r->rank == 1) {
        figure_add(r, "us", 1e6 * median_of(get, 8), "cuIpcGetMemHandle");
        return;
    }
    figure_add(r, "us", 1e6 * median_of(open, 8), "cuIpcOpenMemHandle, 64 MiB");
    figure_add(r, "us", 1e6 * median_of(again, 8), "the same handle again");
    figure_add(r, "us", 1e6 * median_of(touch, 8), "first copy from it");
    figure_add(r, "us", 1e6 * median_of(close, 8), "cuIpcCloseMemHandle");
}

static void pointers(struct rank *r)
{
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned type, managed;
    unsigned long long id;
    int ordinal;
    void *values[] = {&type, &id, &ordinal, &managed};
    CUdeviceptr base, plain = (CUdeviceptr)malloc(64);
    size_t size;
    double began;

    rank_start(r);
    began = gpu_now();
    for (int i = 0; i < 1000; i++)
        cu.PointerGetAttribute(&type, names[0], r->area);
    figure_add(r, "ns", 1e6 * (gpu_now() - began), "cuPointerGetAttribute");
    began = gpu_now();
    for (int i = 0; i < 1000; i++)
        cu.PointerGetAttribute(&id, names[1], r->area);
    figure_add(r, "ns", 1e6 * (gpu_now() - began),
               "cuPointerGetAttribute of the buffer id");
    began = gpu_now();
    for (int i = 0; i < 1000; i++)
        cu.PointerGetAttributes(4, names, values, r->area);
    figure_add(r, "ns", 1e6 * (gpu_now() - began),
               "cuPointerGetAttributes of 4, device memory");
    began = gpu_now();
    for (int i = 0; i < 1000; i++)
        cu.PointerGetAttributes(4, names, values, plain);
    figure_add(r, "ns", 1e6 * (gpu_now() - began),
               "cuPointerGetAttributes of 4, unknown memory");
    began = gpu_now();
    for (int i = 0; i < 1000; i++)
        cu.MemGetAddressRange(&base, &size, r->area + 64);
    figure_add(r, "ns", 1e6 * (gpu_now() - began), "cuMemGetAddressRange");
}

static void registering(struct rank *r)
{
    static const size_t sizes[] = {64 << 10, 1 << 20, 16 << 20, 256 << 20};
    CUdeviceptr at;
    double began;

    rank_start(r);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char *host = aligned_alloc(4096, sizes[i]);

        memset(host, 1, sizes[i]);
        began = gpu_now();
        TRY(cu.MemHostRegister(host, sizes[i], CU_MEMHOSTREGISTER_PORTABLE));
        figure_add(r, "us", 1e6 * (gpu_now() - began),
                   "cuMemHostRegister, %zu KiB", sizes[i] >> 10);
        began = gpu_now();
        TRY(cu.MemHostUnregister(host));
        figure_add(r, "us", 1e6 * (gpu_now() - began),
                   "cuMemHostUnregister, %zu KiB", sizes[i] >> 10);
        began = gpu_now();
        TRY(cu.MemAlloc(&at, sizes[i]));
        figure_add(r, "us", 1e6 * (gpu_now() - began), "cuMemAlloc, %zu KiB",
                   sizes[i] >> 10);
        began = gpu_now();
        TRY(cu.MemFree(at));
        figure_add(r, "us", 1e6 * (gpu_now() - began), "cuMemFree, %zu KiB",
                   sizes[i] >> 10);
        free(host);
    }
}

/* Rank 0 watches the memory that is left while rank 1 starts. */
static void starting(struct rank *r)
{
    size_t before = 0, after = 0, loaded = 0, total;
    double began;

    if (r->rank == 0) {
        TRY(gpu_start(&r->ctx));
        TRY(cu.MemGetInfo(&before, &total));
    }
    rank_barrier(r);
    if (r->rank == 1) {
        CUdevice device;

        began = gpu_now();
        TRY(cu.Init(0));
        figure_add(r, "ms", 1e3 * (gpu_now() - began), "cuInit");
        TRY(cu.DeviceGet(&device, 0));
        began = gpu_now();
        TRY(cu.DevicePrimaryCtxRetain(&r->ctx, device));
        figure_add(r, "ms", 1e3 * (gpu_now() - began),
                   "cuDevicePrimaryCtxRetain");
        TRY(cu.CtxSetCurrent(r->ctx));
    }
    rank_barrier(r);
    if (r->rank == 0)
        TRY(cu.MemGetInfo(&after, &total));
    rank_barrier(r);
    if (r->rank == 1) {
        began = gpu_now();
        if (!gpu_kernel("copy16"))
            rank_fail(r, "the driver does not compile the kernels");
        figure_add(r, "ms", 1e3 * (gpu_now() - began),
                   "cuModuleLoadData of PTX");
        TRY(cu.StreamCreate(&r->s, CU_STREAM_NON_BLOCKING));
    }
    rank_barrier(r);
    if (r->rank == 0) {
        TRY(cu.MemGetInfo(&loaded, &total));
        figure_add(r, "MiB", (double)(before - after) / (1 << 20),
                   "device memory of a second process' context");
        figure_add(r, "MiB", (double)(after - loaded) / (1 << 20),
                   "of its module and stream");
    }
}

static const struct measurement all[] = {
    {"starting", 2, 0, "cuInit 300 ms, a context 200 ms and 500 MiB, PTX 50 ms",
     starting},
    {"graphs", 1, 0,
     "launch 3 us and 0.3 us a node for the host, against 1.2 us a node one "
     "by one; on the device 1 us a node either way",
     graphs},
    {"handles", 2, 0, "get 5 us, open 200 us, again 2 us, close 100 us",
     handles},
    {"pointers", 1, 0, "50 to 200 ns each", pointers},
    {"registering", 1, 0,
     "register 50 us and 60 us a MiB; cuMemAlloc 100 us and more, cuMemFree "
     "likewise",
     registering},
};
const struct measurement_list of_costs = {all, ARRAY_LEN(all)};
