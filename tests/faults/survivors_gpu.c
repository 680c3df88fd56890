/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors_gpu.c - operations on streams, over the fake CUDA driver (tests/fake_cuda). */
#include "tests/faults/survivors.h"
#include "tests/gpu/gpu.h"
#include "tests/support/work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct survivors_gpu {
    CUstream stream; /* the same one in all communicators */
};

static void *open_driver(void) { return dlopen(FAKE_CUDA, RTLD_NOW); }

/* It is opened again by each rank: the keeper may not begin a driver before it forks. */
int survivors_have_gpus(void) { return access(FAKE_CUDA, R_OK) == 0; }

static void must(CUresult rc, const char *what)
{
    if (rc == CUDA_SUCCESS)
        return;
    fprintf(stderr, "check_survivors: %s: %s\n", what, gpu_code(rc));
    exit(3);
}

struct survivors_gpu *survivors_gpu_open(int number)
{
    static struct survivors_gpu gpu;
    const char *why = open_driver() ? gpu_open() : dlerror();
    CUcontext ctx;
    int n = 0;

    if (why) {
        fprintf(stderr, "check_survivors: %s\n", why);
        exit(3);
    }
    must(cu.Init(0), "cuInit");
    must(cu.DeviceGetCount(&n), "cuDeviceGetCount");
    must(cu.DevicePrimaryCtxRetain(&ctx, number % n),
         "cuDevicePrimaryCtxRetain");
    must(cu.CtxSetCurrent(ctx), "cuCtxSetCurrent");
    must(cu.StreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING),
         "cuStreamCreate");
    return &gpu;
}

static CUdeviceptr put(const void *from, size_t len)
{
    CUdeviceptr at = 0;

    must(cu.MemAlloc(&at, len ? len : 1), "cuMemAlloc");
    if (len)
        must(cu.MemcpyHtoD(at, from, len), "cuMemcpyHtoD");
    return at;
}

int survivors_gpu_call(struct survivors_gpu *gpu, const struct coll_args *args,
                       size_t in_len, size_t out_len, struct coll_comm *comm)
{
    CUdeviceptr in = put(args->in, in_len), out = put(args->out, out_len);
    struct coll_args there = *args;
    int rc;

    must(cu.CtxSynchronize(), "cuCtxSynchronize");
    there.in = (const void *)in;
    there.out = (void *)out;
    there.stream = gpu->stream;
    rc = work_call_with(&there, comm);
    must(cu.StreamSynchronize(gpu->stream), "cuStreamSynchronize");
    if (!rc) /* streams go on after a death, also those of ranks that know of none */
        rc = coll_comm_async_error(comm);
    if (!rc && out_len)
        must(cu.MemcpyDtoH(args->out, out, out_len), "cuMemcpyDtoH");
    must(cu.MemFree(in), "cuMemFree");
    must(cu.MemFree(out), "cuMemFree");
    return rc;
}
