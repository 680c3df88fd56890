/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_kernel.c - loading and launching kernels, and what runs beside what. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>
#include <string.h>

static void launch(void)
{
    CUdeviceptr at;
    CUfunction f, g;
    void *args[1], *none[1] = {NULL};
    void *extra[] = {CU_LAUNCH_PARAM_END};
    CUmodule module;

    start();
    at = new_memory(64);
    f = gpu_kernel("add_one");
    args[0] = &at;
    WANT(INVALID_VALUE, gpu_launch(f, 0, 1, NULL, args));
    WANT(INVALID_VALUE, gpu_launch(f, 1, 0, NULL, args));
    WANT(INVALID_VALUE, gpu_launch(f, 1, 1025, NULL, args));
    WANT(INVALID_VALUE,
         cu.LaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, args, NULL));
    WANT(INVALID_VALUE,
         cu.LaunchKernel(f, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    WANT(INVALID_VALUE,
         cu.LaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, args, NULL));
    WANT(INVALID_VALUE,
         cu.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, args, NULL));
    /* Documented: INVALID_VALUE; an H100 (driver 580.159) takes both. */
    GOOD(cu.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra));
    WANT(INVALID_VALUE, gpu_launch(f, 1, 1, NULL, none));
    WANT(INVALID_VALUE, gpu_launch(f, 1, 1, NULL, NULL));
    GOOD(cu.CtxSynchronize());
    GOOD(gpu_launch(f, 1, 1, NULL, args));
    GOOD(cu.CtxSynchronize());
    MUST(cu.ModuleLoadData(&module, gpu_ptx));
    WANT(NOT_FOUND, cu.ModuleGetFunction(&g, module, "no_such_kernel"));
}

static void images(void)
{
    static const char head[] = ".version 7.0\n.target sm_70\n"
                               ".address_size 64\n";
    char text[200];
    CUmodule module;

    start();
    WANT(INVALID_IMAGE, cu.ModuleLoadData(&module, "garbage"));
    WANT(INVALID_IMAGE, cu.ModuleLoadData(&module, ""));
    WANT(INVALID_VALUE, cu.ModuleLoadData(&module, NULL));
    strcpy(text, head);
    strcat(text, ".visible .entry f()\n{ nonsense; }\n");
    WANT(INVALID_PTX, cu.ModuleLoadData(&module, text));
    WANT(UNSUPPORTED_PTX_VERSION,
         cu.ModuleLoadData(&module, ".version 19.0\n.target sm_70\n"
                                    ".address_size 64\n"));
    /* Documented: NO_BINARY_FOR_GPU; an H100 (driver 580.159) answers this. */
    WANT(INVALID_PTX,
         cu.ModuleLoadData(&module, ".version 8.7\n.target sm_120\n"
                                    ".address_size 64\n"
                                    ".visible .entry f()\n{ ret; }\n"));
    WANT(INVALID_IMAGE,
         cu.ModuleLoadData(&module, ".visible .entry f()\n{ ret; }\n"));
    seen("a module without kernels", "%s",
         gpu_code(cu.ModuleLoadData(&module, head)));
    GOOD(cu.ModuleLoadData(&module, gpu_ptx));
    GOOD(cu.ModuleUnload(module));
    GOOD(cu.CtxSynchronize());
}

static void part_loads(int talk)
{
    CUmodule module;

    start();
    tell_word(talk, (int)cu.ModuleLoadData(&module, gpu_ptx));
}

/* Documented: JIT_COMPILATION_DISABLED; an H100 (driver 580.159) answers SUCCESS, for
 * which its cache of what other processes had compiled may be the reason. */
static void no_jit(void)
{
    struct part_how how = {.setenv = "CUDA_DISABLE_JIT", .value = "1"};
    struct part_run run = part_start("loads", &how);

    seen_code("cuModuleLoadData of PTX with CUDA_DISABLE_JIT=1",
              (CUresult)hear_word(run.talk));
    part_end(&run);
}

static void cooperative(void)
{
    unsigned long long ns = 1000;
    void *args[] = {&ns};
    int blocks = 0, processors = 0;
    CUfunction f;
    unsigned most;

    start();
    f = gpu_kernel("hold");
    MUST(cu.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
    MUST(cu.DeviceGetAttribute(&processors,
                               CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    most = (unsigned)(blocks * processors);
    seen("blocks of 128 threads at once", "%u", most);
    GOOD(cu.LaunchCooperativeKernel(f, most, 1, 1, 128, 1, 1, 0, NULL, args));
    WANT(COOPERATIVE_LAUNCH_TOO_LARGE,
         cu.LaunchCooperativeKernel(f, most + 1, 1, 1, 128, 1, 1, 0, NULL,
                                    args));
    GOOD(cu.CtxSynchronize());
}

/* One kernel waits for what the other one writes; met[0] and met[1] tell. */
static void pair(CUstream a, CUstream b, const char *what, int want)
{
    unsigned long long limit = 500000000;
    CUfunction await = gpu_kernel("await"), store = gpu_kernel("store");
    struct words w = new_words(4);
    CUdeviceptr flag = new_memory(64), met = w.dev;
    unsigned one = 1;
    void *wait[] = {&flag, &one, &limit, &met}, *set[] = {&flag, &one};

    MUST(cu.MemsetD8Async(flag, 0, 64, a));
    MUST(cu.StreamSynchronize(a));
    MUST(gpu_launch(await, 1, 1, a, wait));
    MUST(gpu_launch(store, 1, 1, b, set));
    MUST(cu.StreamSynchronize(a));
    MUST(cu.StreamSynchronize(b));
    want_number(what, want, w.host[0]);
}

static void two_streams(void)
{
    CUstream a, b, blocking;

    start();
    a = new_stream();
    b = new_stream();
    MUST(cu.StreamCreate(&blocking, CU_STREAM_DEFAULT));
    pair(a, b, "kernels of two non-blocking streams meet", 1);
    pair(NULL, b, "of the legacy and a non-blocking stream", 1);
    pair(blocking, b, "of a blocking and a non-blocking stream", 1);
    pair(blocking, NULL, "of a blocking and the legacy stream", 0);
}

static void part_pair(int talk)
{
    CUstream a, b;

    start();
    a = new_stream();
    b = new_stream();
    pair(a, b, "kernels of two streams meet, CUDA_DEVICE_MAX_CONNECTIONS=1", 1);
    tell_word(talk, 1);
}

static void one_connection(void)
{
    struct part_how how = {.setenv = "CUDA_DEVICE_MAX_CONNECTIONS",
                           .value = "1"};
    struct part_run run = part_start("pair", &how);

    hear_word(run.talk);
    part_end(&run);
}

/* A kernel that waits for the host, and one beside it that waits for a memop. */
static void host_and_memop(void)
{
    unsigned long long limit = 2000000000;
    CUfunction await;
    struct words w;
    CUdeviceptr met;
    unsigned one = 1;
    CUstream a, b;

    start();
    await = gpu_kernel("await");
    w = new_words(4);
    a = new_stream();
    b = new_stream();
    met = w.dev + 4;
    MUST(gpu_launch(await, 1, 1, a, (void *[]){&w.dev, &one, &limit, &met}));
    rest(20);
    w.host[0] = 1;
    want_true("a running kernel sees a word the host writes",
              becomes(w.host + 1, 1, 1000));
    MUST(cu.StreamSynchronize(a));
    w.host[0] = w.host[1] = 0;
    MUST(gpu_launch(await, 1, 1, a, (void *[]){&w.dev, &one, &limit, &met}));
    MUST(cu.StreamWriteValue32(b, w.dev, 1, 0));
    want_true("and one that another stream writes",
              becomes(w.host + 1, 1, 1000));
}

/* The copy that the benchmarks use, every byte of it. */
static void copy_is_right(void)
{
    static const size_t lengths[] = {16, 48, 4096, 65536, 1000000, 8 << 20};
    unsigned char *in = malloc(8 << 20), *out = malloc(8 << 20);
    CUdeviceptr from, to;
    CUfunction f;

    start();
    f = gpu_kernel("copy16");
    from = new_memory(8 << 20);
    to = new_memory(8 << 20);
    for (size_t i = 0; i < (8 << 20); i++)
        in[i] = (unsigned char)(i * 2654435761u >> 13);
    MUST(cu.MemcpyHtoD(from, in, 8 << 20));
    MUST(cu.CtxSynchronize());
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        size_t len = lengths[i] / 16 * 16;
        unsigned long long n = len / 16;

        MUST(cu.MemsetD8(to, 0xee, 8 << 20));
        MUST(gpu_launch(f, 7, 96, NULL, (void *[]){&to, &from, &n}));
        MUST(cu.MemcpyDtoH(out, to, 8 << 20));
        want_true("copied whole, and nothing beyond",
                  !memcmp(in, out, len) &&
                      (len == 8 << 20 || out[len] == 0xee));
    }
}

#define AREA "kernel"
static const struct rule rules[] = {
    {AREA, "launch", "DA cuLaunchKernel",
     "a wrong launch is refused at once and leaves nothing behind", launch},
    {AREA, "images", "DA cuModuleLoadData",
     "what cannot be loaded, and its code", images},
    {AREA, "no_jit", "PG 'CUDA Environment Variables'",
     "whether PTX can be forbidden", no_jit},
    {AREA, "cooperative", "DA cuLaunchCooperativeKernel",
     "a cooperative grid must fit at once", cooperative},
    {AREA, "two_streams", "PG 'Streams'; no promise of concurrency",
     "kernels of two streams run side by side", two_streams},
    {AREA, "one_connection", "PG 'CUDA Environment Variables'",
     "they do so with one connection too", one_connection},
    {AREA, "host_and_memop", "PTX ISA 'Memory Consistency Model'",
     "a running kernel sees what the host and streams write", host_and_memop},
    {AREA, "copy_is_right", "tests/gpu/gpu_ptx.c",
     "the kernel that is measured copies what it should", copy_is_right},
};
static const struct part parts[] = {{"loads", part_loads}, {"pair", part_pair}};
const struct rule_file rules_kernel = {rules, ARRAY_LEN(rules), parts,
                                       ARRAY_LEN(parts)};
