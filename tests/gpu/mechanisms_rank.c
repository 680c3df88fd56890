/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms_rank.c - a rank: its start, its flags, its figures. */
#include "tests/gpu/mechanisms.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS_AT = 64 << 10 };

void rank_fail(struct rank *r, const char *why)
{
    if (!atomic_exchange(&r->share->has_failed, 1))
        snprintf(r->share->why, sizeof(r->share->why), "rank %d: %.180s",
                 r->rank, why);
    _exit(1);
}

void rank_try(struct rank *r, const char *call, CUresult rc)
{
    char why[200];

    if (rc == CUDA_SUCCESS)
        return;
    snprintf(why, sizeof(why), "%.140s: %s", call, gpu_code(rc));
    rank_fail(r, why);
}

void rank_barrier(struct rank *r)
{
    double until = gpu_now() + 30;
    int all = ++r->barriers * r->n;

    atomic_fetch_add(&r->share->arrived, 1);
    while (atomic_load(&r->share->arrived) < all) {
        if (atomic_load(&r->share->has_failed))
            _exit(1);
        if (gpu_now() > until)
            rank_fail(r, "another rank did not come to a barrier");
        sched_yield();
    }
}

/* Threads register the segment once: the first one does. */
static void register_share(struct rank *r)
{
    if (!r->is_thread || r->rank == 0)
        TRY(cu.MemHostRegister(r->share, sizeof(*r->share),
                               CU_MEMHOSTREGISTER_PORTABLE |
                                   CU_MEMHOSTREGISTER_DEVICEMAP));
    if (r->is_thread)
        rank_barrier(r);
    TRY(cu.MemHostGetDevicePointer(&r->share_dev, r->share, 0));
}

static void map_areas(struct rank *r)
{
    r->share->areas[r->rank] = r->area;
    if (!r->is_thread)
        TRY(cu.IpcGetMemHandle(&r->share->handles[r->rank], r->area));
    rank_barrier(r);
    for (int i = 0; i < r->n; i++) {
        if (i == r->rank || r->is_thread)
            r->areas[i] = r->share->areas[i];
        else
            TRY(cu.IpcOpenMemHandle(&r->areas[i], r->share->handles[i],
                                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    }
}

void rank_start(struct rank *r)
{
    TRY(gpu_start(&r->ctx));
    TRY(cu.StreamCreate(&r->s, CU_STREAM_NON_BLOCKING));
    TRY(cu.MemAlloc(&r->area, AREA_LEN));
    TRY(cu.MemsetD8Async(r->area, 0, AREA_LEN, r->s));
    TRY(cu.StreamSynchronize(r->s));
    register_share(r);
    map_areas(r);
    if (r->is_thread && r->rank) /* compiled by one thread, used by all */
        rank_barrier(r);
    r->pass8 = gpu_kernel("pass8");
    r->add_one = gpu_kernel("add_one");
    r->hold = gpu_kernel("hold");
    r->pingpong = gpu_kernel("pingpong");
    r->gaps = gpu_kernel("gaps");
    r->copy16 = gpu_kernel("copy16");
    if (!r->copy16)
        rank_fail(r, "the driver does not compile the kernels");
    if (!r->is_thread || r->rank == 0)
        rank_barrier(r);
}

void rank_run(const struct measurement *m, struct rank *r)
{
    r->k = 0;
    r->barriers = 0;
    m->run(r);
    rank_barrier(
        r); /* nobody's memory goes while another one's stream uses it */
}

static size_t flag_at(int from, int round)
{
    return (size_t)(from * MAX_ROUNDS + round) * sizeof(struct line);
}

CUdeviceptr host_flag(const struct rank *r, int to, int from, int round)
{
    return r->share_dev + offsetof(struct share, flags) +
           (size_t)to * MAX_RANKS * MAX_ROUNDS * sizeof(struct line) +
           flag_at(from, round);
}

CUdeviceptr device_flag(const struct rank *r, int to, int from, int round)
{
    return r->areas[to] + flag_at(from, round);
}

CUdeviceptr slot_of(const struct rank *r, int to, int from)
{
    return r->areas[to] + SLOTS_AT + (size_t)from * 256;
}

CUdeviceptr word_dev(const struct rank *r, int i)
{
    return r->share_dev + offsetof(struct share, words) +
           ((size_t)r->rank * 4 + (size_t)i) * sizeof(struct line);
}

void figure_add(struct rank *r, const char *unit, double value,
                const char *format, ...)
{
    int i = atomic_fetch_add(&r->share->n_figures, 1);
    struct figure *f = &r->share->figures[i];
    va_list args;

    if (i >= MAX_FIGURES)
        rank_fail(r, "too many figures");
    va_start(args, format);
    vsnprintf(f->name, sizeof(f->name), format, args);
    va_end(args);
    snprintf(f->unit, sizeof(f->unit), "%s", unit);
    f->value = value;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double part_of(double *times, int n, double part)
{
    qsort(times, (size_t)n, sizeof(*times), by_size);
    return times[(int)(part * (n - 1))];
}

double median_of(double *times, int n) { return part_of(times, n, 0.5); }
