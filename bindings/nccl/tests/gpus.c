/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus.c - ranks on the GPUs of the fake CUDA driver. */
#include "bindings/nccl/tests/gpus.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void nc_check(ncclResult_t result, const char *call, const char *file, int line)
{
    ck_assert_msg(result == ncclSuccess, "%s:%d: %s: %s: %s", file, line, call,
                  ncclGetErrorString(result), ncclGetLastError(NULL));
}

/* ---- GPUs -------------------------------------------------------------------------- */

void nc_start(int n_gpus)
{
    char text[12];

    snprintf(text, sizeof(text), "%d", n_gpus);
    setenv("FAKE_CUDA_DEVICES", text, 1);
    setenv("COLL_TIMEOUT", "60", 0);
    fake_open();
    OK(cu.Init(0));
}

void nc_take(struct rank *r, int device, size_t len)
{
    *r = (struct rank){.device = device, .context = fake_device(device)};
    r->stream = fake_stream();
    r->in = (char *)fake_memory(len);
    r->out = (char *)fake_memory(len);
}

void nc_leave(struct rank *r)
{
    OK(cu.CtxSetCurrent(r->context));
    OK(cu.MemFree((CUdeviceptr)r->in));
    OK(cu.MemFree((CUdeviceptr)r->out));
    OK(cu.StreamDestroy(r->stream));
}

void nc_put(const struct rank *r, void *to, const void *from, size_t len)
{
    OK(cu.CtxPushCurrent(r->context));
    OK(cu.MemcpyHtoD((CUdeviceptr)to, from, len));
    OK(cu.StreamSynchronize(NULL));
    OK(cu.CtxPopCurrent(&(CUcontext){NULL}));
}

void nc_get(const struct rank *r, void *to, const void *from, size_t len)
{
    OK(cu.CtxPushCurrent(r->context));
    OK(cu.MemcpyDtoH(to, (CUdeviceptr)from, len));
    OK(cu.CtxPopCurrent(&(CUcontext){NULL}));
}

void nc_sync(const struct rank *r)
{
    OK(cu.CtxPushCurrent(r->context));
    OK(cu.StreamSynchronize(r->stream));
    OK(cu.CtxPopCurrent(&(CUcontext){NULL}));
}

/* ---- elements ------------------------------------------------------------------------ */

size_t nc_size(ncclDataType_t type)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return sizes[type];
}

/* The bits of a floating-point number that needs no rounding. */
static unsigned pack(double value, int exponent_bits, int mantissa_bits)
{
    int e = 0, bias = (1 << (exponent_bits - 1)) - 1;
    double m = frexp(value, &e); /* in [0.5, 1) */

    if (value == 0)
        return 0;
    return (unsigned)(e - 1 + bias) << mantissa_bits |
           (unsigned)((2 * m - 1) * (1 << mantissa_bits));
}

static void put_bits(void *out, unsigned bits, size_t size)
{
    unsigned char byte = (unsigned char)bits;
    uint16_t half = (uint16_t)bits;

    if (size == 1)
        memcpy(out, &byte, 1);
    else
        memcpy(out, &half, 2);
}

void nc_encode(ncclDataType_t type, double value, void *out)
{
    int64_t whole =
        (int64_t)value; /* little endian, so its first bytes serve */
    float single = (float)value;

    switch (type) {
    case ncclFloat16:
        put_bits(out, pack(value, 5, 10), 2);
        break;
    case ncclBfloat16:
        put_bits(out, pack(value, 8, 7), 2);
        break;
    case ncclFloat8e4m3:
        put_bits(out, pack(value, 4, 3), 1);
        break;
    case ncclFloat8e5m2:
        put_bits(out, pack(value, 5, 2), 1);
        break;
    case ncclFloat32:
        memcpy(out, &single, sizeof(single));
        break;
    case ncclFloat64:
        memcpy(out, &value, sizeof(value));
        break;
    default:
        memcpy(out, &whole, nc_size(type));
    }
}

/* Elements that are all the same. */
static char *repeat(ncclDataType_t type, size_t count, double value)
{
    size_t size = nc_size(type);
    char *all = malloc(count * size + 1);

    for (size_t i = 0; i < count; i++)
        nc_encode(type, value, all + i * size);
    return all;
}

void nc_fill(const struct rank *r, void *to, ncclDataType_t type, size_t count,
             double value)
{
    char *all = repeat(type, count, value);

    nc_put(r, to, all, count * nc_size(type));
    free(all);
}

int nc_has(const struct rank *r, const void *at, ncclDataType_t type,
           size_t count, double value)
{
    size_t len = count * nc_size(type);
    char *want = repeat(type, count, value), *got = malloc(len + 1);
    int is_so;

    nc_get(r, got, at, len);
    is_so = !memcmp(want, got, len);
    free(want);
    free(got);
    return is_so;
}

/* ---- ranks --------------------------------------------------------------------------- */

/* The process of rank 0 makes the id, and the others read it. */
struct page {
    _Atomic int is_there;
    ncclUniqueId id;
};

static int run_process(struct page *page, int rank, int n, nc_fn *fn)
{
    if (!rank) {
        NC(ncclGetUniqueId(&page->id));
        page->is_there = 1;
    }
    while (!page->is_there)
        usleep(1000);
    return fn(rank, n, &page->id);
}

int nc_processes(int n, nc_fn *fn)
{
    struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int n_failed = 0, pids[MAX_GPUS], status;

    for (int r = 0; r < n; r++) {
        pids[r] = fork();
        if (!pids[r])
            exit(run_process(page, r, n, fn));
    }
    for (int r = 0; r < n; r++) {
        waitpid(pids[r], &status, 0);
        n_failed += status != 0;
    }
    munmap(page, sizeof(*page));
    return n_failed;
}

struct thread {
    pthread_t thread;
    int rank, n, failed;
    const ncclUniqueId *id;
    nc_fn *fn;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;

    t->failed = t->fn(t->rank, t->n, t->id) != 0;
    return NULL;
}

int nc_threads(int n, nc_fn *fn)
{
    struct thread threads[MAX_GPUS];
    ncclUniqueId id;
    int n_failed = 0;

    NC(ncclGetUniqueId(&id));
    for (int r = 0; r < n; r++) {
        threads[r] = (struct thread){.rank = r, .n = n, .id = &id, .fn = fn};
        pthread_create(&threads[r].thread, NULL, run_thread, &threads[r]);
    }
    for (int r = 0; r < n; r++) {
        pthread_join(threads[r].thread, NULL);
        n_failed += threads[r].failed;
    }
    return n_failed;
}
