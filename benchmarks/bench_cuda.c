/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cuda.c - buffers on a GPU and a stream, by CUDA's driver API.  The driver is
 * loaded at run time. */
#include "benchmarks/bench.h"
#include "tools/common/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_entries cu;
static char what[128];
static int n_devices;
static CUstream stream;
static CUevent *marks;
static long n_marks;
static CUgraphExec graph;

/* What runs in the other stream, from the first fork() on. */
static struct {
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    CUevent begins, ends;
    CUdeviceptr out;
    unsigned blocks; /* one on each multiprocessor */
} beside;

enum { THREADS = 256 }; /* of a block */

/* Translate the driver's answer: 0, or COLL_ERR_SYSTEM and *why. */
static int judge(CUresult rc, const char *call, char *why, size_t len)
{
    return cuda_judge(&cu, rc, call, why, len) ? COLL_ERR_SYSTEM : 0;
}

/* The same, said at once. */
static int check(CUresult rc, const char *call)
{
    char why[200];
    int status = judge(rc, call, why, sizeof(why));

    if (status)
        fprintf(stderr, "%s\n", why);
    return status;
}

/* Start the driver, and return the number of GPUs; or -1 and why. */
static int start(char *why, size_t len)
{
    char what_fails[200];
    int n = cuda_find(&cu, what_fails, sizeof(what_fails));

    if (!n)
        n = cuda_count(&cu, what_fails, sizeof(what_fails));
    if (n < 1)
        snprintf(why, len, "%s, or use -d host", what_fails);
    return n;
}

static int use_device(int number, char *why, size_t len)
{
    CUdevice device;
    CUcontext context;
    char name[100] = "";
    int rc = judge(cu.cuDeviceGet(&device, number), "cuDeviceGet", why, len);

    if (!rc)
        rc = judge(cu.cuDeviceGetName(name, sizeof(name), device),
                   "cuDeviceGetName", why, len);
    if (!rc)
        rc = judge(cu.cuDevicePrimaryCtxRetain(&context, device),
                   "cuDevicePrimaryCtxRetain", why, len);
    if (!rc)
        rc = judge(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent", why, len);
    if (!rc)
        rc = judge(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                   "cuStreamCreate", why, len);
    snprintf(what, sizeof(what), "cuda (%s)", name);
    return rc;
}

static const char *open_cuda(int local_rank, char *why, size_t len)
{
    n_devices = start(why, len);
    if (n_devices < 1 || use_device(local_rank % n_devices, why, len))
        return NULL;
    return what;
}

static void drop_graph(void)
{
    if (graph)
        cu.cuGraphExecDestroy(graph);
    graph = NULL;
}

static void drop_beside(void)
{
    if (beside.begins)
        cu.cuEventDestroy(beside.begins);
    if (beside.ends)
        cu.cuEventDestroy(beside.ends);
    if (beside.stream)
        cu.cuStreamDestroy(beside.stream);
    if (beside.out)
        cu.cuMemFree(beside.out);
    if (beside.module)
        cu.cuModuleUnload(beside.module);
    memset(&beside, 0, sizeof(beside));
}

static void close_cuda(void)
{
    for (long i = 0; i < n_marks; i++)
        cu.cuEventDestroy(marks[i]);
    free(marks);
    marks = NULL;
    n_marks = 0;
    drop_graph();
    drop_beside();
    if (stream)
        cu.cuStreamDestroy(stream);
    stream = NULL;
}

static int get_memory(void **at, size_t len)
{
    CUdeviceptr ptr = 0;

    if (cu.cuMemAlloc(&ptr, len ? len : 1))
        return COLL_ERR_NOMEM;
    *at = (void *)(uintptr_t)ptr;
    return 0;
}

static void free_memory(void *at)
{
    if (at)
        check(cu.cuMemFree(cuda_address(at)), "cuMemFree");
}

static int get(void *to, const void *from, size_t len)
{
    return len ? check(cu.cuMemcpyDtoH(to, cuda_address(from), len),
                       "cuMemcpyDtoH")
               : 0;
}

static int count(void) { return n_devices; }

static void *the_stream(void) { return stream; }

static int copy(void *to, const void *from, size_t len)
{
    return check(
        cu.cuMemcpyAsync(cuda_address(to), cuda_address(from), len, stream),
        "cuMemcpyAsync");
}

static int wait_for_stream(void)
{
    return check(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

/* In the stream: cuMemcpyHtoD returns before the bytes are there for other streams. */
static int put(void *to, const void *from, size_t len)
{
    int rc = len ? copy(to, from, len) : 0;

    return rc ? rc : wait_for_stream();
}

/* Events are created when they are first needed. */
static int mark(long i)
{
    if (i == n_marks) {
        CUevent *more = realloc(marks, ((size_t)n_marks + 1) * sizeof(*marks));
        int rc;

        if (!more)
            return COLL_ERR_NOMEM;
        marks = more;
        rc = check(cu.cuEventCreate(&marks[i], CU_EVENT_DEFAULT),
                   "cuEventCreate");
        if (rc)
            return rc;
        n_marks++;
    }
    return check(cu.cuEventRecord(marks[i], stream), "cuEventRecord");
}

static double between(long i)
{
    float ms = 0;

    check(cu.cuEventElapsedTime(&ms, marks[i], marks[i + 1]),
          "cuEventElapsedTime");
    return (double)ms / 1e3;
}

/* Other threads, such as the library's, may go on meanwhile. */
static int capture(void)
{
    drop_graph();
    return check(
        cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
}

static int capture_end(void)
{
    CUgraph captured = NULL;
    int rc =
        check(cu.cuStreamEndCapture(stream, &captured), "cuStreamEndCapture");

    if (!rc)
        rc = check(cu.cuGraphInstantiateWithFlags(&graph, captured, 0),
                   "cuGraphInstantiateWithFlags");
    if (captured)
        cu.cuGraphDestroy(captured);
    return rc;
}

static int launch(void)
{
    return check(cu.cuGraphLaunch(graph, stream), "cuGraphLaunch");
}

/* ---- a computation beside ------------------------------------------------ */

static size_t results_len(void)
{
    return (size_t)beside.blocks * THREADS * sizeof(float);
}

static int load_kernel(void)
{
    CUdevice device = 0;
    int processors = 0, rc;

    if (!bench_kernel_image[0]) {
        fprintf(
            stderr,
            "this program was built without nvcc, so it has no kernel "
            "to hide behind; install CUDA's compiler, and configure again\n");
        return COLL_ERR_UNSUPPORTED;
    }
    rc = check(cu.cuCtxGetDevice(&device), "cuCtxGetDevice");
    if (!rc)
        rc = check(
            cu.cuDeviceGetAttribute(
                &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
            "cuDeviceGetAttribute");
    if (!rc)
        rc = check(cu.cuModuleLoadData(&beside.module, bench_kernel_image),
                   "cuModuleLoadData");
    if (!rc)
        rc = check(cu.cuModuleGetFunction(&beside.kernel, beside.module,
                                          "bench_compute"),
                   "cuModuleGetFunction");
    beside.blocks = (unsigned)processors;
    return rc;
}

static int make_beside(void)
{
    int rc = load_kernel();

    if (!rc)
        rc = check(cu.cuMemAlloc(&beside.out, results_len()), "cuMemAlloc");
    if (!rc)
        rc = check(cu.cuEventCreate(&beside.begins, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate");
    if (!rc)
        rc = check(cu.cuEventCreate(&beside.ends, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate");
    return rc ? rc
              : check(cu.cuStreamCreate(&beside.stream, CU_STREAM_NON_BLOCKING),
                      "cuStreamCreate");
}

static int fork_beside(uint64_t work)
{
    size_t len;
    void *params[] = {&beside.out, &len, &work};
    int rc = beside.stream ? 0 : make_beside();

    len = results_len();
    if (!rc)
        rc = check(cu.cuEventRecord(beside.begins, stream), "cuEventRecord");
    if (!rc)
        rc = check(cu.cuStreamWaitEvent(beside.stream, beside.begins, 0),
                   "cuStreamWaitEvent");
    if (!rc)
        rc =
            check(cu.cuLaunchKernel(beside.kernel, beside.blocks, 1, 1, THREADS,
                                    1, 1, 0, beside.stream, params, NULL),
                  "cuLaunchKernel");
    return rc ? rc
              : check(cu.cuEventRecord(beside.ends, beside.stream),
                      "cuEventRecord");
}

static int join_beside(void)
{
    return check(cu.cuStreamWaitEvent(stream, beside.ends, 0),
                 "cuStreamWaitEvent");
}

const struct bench_device bench_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .count = count,
    .alloc = get_memory,
    .free = free_memory,
    .put = put,
    .get = get,
    .stream = the_stream,
    .copy = copy,
    .wait = wait_for_stream,
    .mark = mark,
    .between = between,
    .capture = capture,
    .capture_end = capture_end,
    .launch = launch,
    .fork = fork_beside,
    .join = join_beside,
};
