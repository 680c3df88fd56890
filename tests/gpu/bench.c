/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.c - each kernel's bandwidth against cuMemcpyDtoDAsync().
 *
 * A kernel that moves n bytes, those it reads and those it writes, is compared
 * with a copy of n / 2 bytes, in turns: kernel, copy, kernel, copy.  A turn is
 * several calls back to back between two events; figures are medians of turns.
 * Buffers rotate through more memory than the caches hold, so that what is
 * measured is the memory, not the cache.
 */
#include "tests/gpu/bench.h"
#include "lib/device/cuda_kernels.h"
#include "lib/util/sort.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TURNS 11
#define TURN_US 300.0
#define ARENA ((size_t)1280 << 20) /* of which 512 MiB are gone through */

struct subject {
    const char *entry, *name;
    char params;  /* 'c'opy, 'r'educe, 'f'orward, 's'cale, 'p'remul */
    int n_moved;  /* per byte of result */
    int is_swept; /* over all numbers of blocks */
};

static const struct subject subjects[] = {
    {"coll_copy", "copy", 'c', 2, 1},
    {"coll_copy", "copy_forward", 'd', 3, 0},
    {"coll_sum_f32", "sum_f32", 'r', 3, 1},
    {"coll_sum_f16", "sum_f16", 'r', 3, 1},
    {"coll_sum_bf16", "sum_bf16", 'r', 3, 0},
    {"coll_sum_f64", "sum_f64", 'r', 3, 0},
    {"coll_sum_u8", "sum_i8", 'r', 3, 1},
    {"coll_max_f32", "max_f32", 'r', 3, 0},
    {"coll_max_f16", "max_f16", 'r', 3, 0},
    {"coll_max_f64", "max_f64", 'r', 3, 0},
    {"coll_max_i8", "max_i8", 'r', 3, 0},
    {"coll_prod_u8", "prod_i8", 'r', 3, 0},
    {"coll_sum_f32", "forward_sum_f32", 'f', 4, 1},
    {"coll_sum_bf16", "forward_sum_bf16", 'f', 4, 0},
    {"coll_sum_f32", "misaligned_sum_f32", 'm', 3, 0},
    {"coll_sum_u8", "misaligned_sum_i8", 'm', 3, 0},
    {"coll_scale_f32", "scale_f32", 's', 2, 0},
    {"coll_scale_f16", "scale_f16", 's', 2, 0},
    {"coll_scale_bf16", "scale_bf16", 's', 2, 0},
    {"coll_scale_f64", "scale_f64", 's', 2, 0},
    {"coll_scale_i8", "scale_i8", 's', 2, 0},
    {"coll_scale_i16", "scale_i16", 's', 2, 0},
    {"coll_scale_i32", "scale_i32", 's', 2, 0},
    {"coll_scale_i64", "scale_i64", 's', 2, 0},
    {"coll_multiply_f32", "multiply_f32", 'p', 2, 0},
    {"coll_multiply_bf16", "multiply_bf16", 'p', 2, 0},
};

static const size_t sizes[] = {BENCH_LEAST, 64 << 10, 1 << 20, 16 << 20,
                               256 << 20};

/* What is timed, and how often it was called so far. */
struct run {
    const struct kernels *kernels;
    const struct subject *subject;
    CUfunction fn;
    CUdeviceptr arena;
    size_t most, arena_len, rotate; /* bytes */
    size_t len, room, n_sets, turn;
    unsigned blocks;
    FILE *json;
    const char *separator;
};

static CUevent began, ended;

/* ---- one call --------------------------------------------------------------- */

/* dst, next, a and b of the next set of buffers. */
static void next_set(struct run *r, CUdeviceptr buffer[4])
{
    CUdeviceptr set = r->arena + r->turn++ % r->n_sets * 4 * r->room;

    for (int i = 0; i < 4; i++)
        buffer[i] = set + (size_t)i * r->room;
}

static void call_kernel(struct run *r)
{
    CUdeviceptr at[4], none = 0;
    uint64_t factor = 0x3f803f80, magic = coll__cuda_magic(7);
    int n_ranks = 7;
    void *copy[] = {&at[0], r->subject->params == 'd' ? &at[1] : &none, &at[2],
                    &r->len};
    void *reduce[] = {&at[0], r->subject->params == 'f' ? &at[1] : &none,
                      &at[2], &at[3], &r->len};
    void *scale[] = {&at[0], &at[0], &r->len, &n_ranks, &magic};
    void *multiply[] = {&at[0], &at[2], &r->len, &factor};
    void **params = reduce;

    next_set(r, at);
    if (r->subject->params == 'm')
        at[3] += 4;
    if (r->subject->params == 'c' || r->subject->params == 'd')
        params = copy;
    if (r->subject->params == 's')
        params = scale;
    if (r->subject->params == 'p')
        params = multiply;
    gpu_must(gpu_launch(r->fn, r->blocks, COLL__CUDA_THREADS, NULL, params),
             r->subject->entry);
}

/* The driver's copy of as many bytes, read and written, as the kernel moves. */
static void call_copy(struct run *r)
{
    size_t len = r->len * (size_t)r->subject->n_moved / 2;
    CUdeviceptr at[4];

    next_set(r, at);
    gpu_must(cu.MemcpyDtoDAsync(at[0], at[2], len, NULL), "cuMemcpyDtoDAsync");
}

/* ---- timing ------------------------------------------------------------------ */

/* Return what a call takes, of n back to back, in microseconds. */
static double time_calls(struct run *r, void (*call)(struct run *), int n)
{
    float ms;

    gpu_must(cu.EventRecord(began, NULL), "cuEventRecord");
    for (int i = 0; i < n; i++)
        call(r);
    gpu_must(cu.EventRecord(ended, NULL), "cuEventRecord");
    gpu_must(cu.EventSynchronize(ended), "cuEventSynchronize");
    gpu_must(cu.EventElapsedTime(&ms, began, ended), "cuEventElapsedTime");
    return (double)ms * 1e3 / n;
}

static int calls_a_turn(struct run *r, void (*call)(struct run *))
{
    double us;

    time_calls(r, call, 1);
    us = time_calls(r, call, 2);
    return us > TURN_US ? 1 : (int)(TURN_US / us) + 1;
}

static double median(double *x)
{
    sort_doubles(x, N_TURNS);
    return x[N_TURNS / 2];
}

static void measure(struct run *r)
{
    double kernel[N_TURNS], copy[N_TURNS], moved;
    int n_kernel = calls_a_turn(r, call_kernel);
    int n_copy = calls_a_turn(r, call_copy);

    for (int i = 0; i < N_TURNS; i++) {
        kernel[i] = time_calls(r, call_kernel, n_kernel);
        copy[i] = time_calls(r, call_copy, n_copy);
    }
    moved = (double)r->len * r->subject->n_moved * 1e-3;
    median(kernel);
    median(copy);
    fprintf(r->json, "%s\n    [\"%s\", %zu, %u, %.2f, %.1f, %.2f, %.1f, %.3f]",
            r->separator, r->subject->name, r->len, r->blocks,
            kernel[N_TURNS / 2], moved / kernel[N_TURNS / 2], copy[N_TURNS / 2],
            moved / copy[N_TURNS / 2], copy[N_TURNS / 2] / kernel[N_TURNS / 2]);
    r->separator = ",";
}

/* ---- the list ----------------------------------------------------------------- */

static int is_worth(struct run *r, int is_quick)
{
    unsigned most = 2 * (unsigned)r->kernels->processors;

    if (r->blocks == coll__cuda_blocks(r->len, most))
        return 1;
    return r->subject->is_swept && !is_quick && r->len >= sizes[1] &&
           r->blocks <= r->len / 16 / COLL__CUDA_THREADS;
}

static void bench_subject(struct run *r, int is_quick)
{
    unsigned p = (unsigned)r->kernels->processors;

    r->fn = kernels_entry(r->kernels, r->subject->entry);
    for (size_t s = 0; s < ARRAY_LEN(sizes) && sizes[s] <= r->most; s++) {
        unsigned blocks[] = {
            1, 4, 16, 32, p / 2, p, 2 * p, coll__cuda_blocks(sizes[s], 2 * p)};
        size_t last = ARRAY_LEN(blocks) - 1;

        r->len = sizes[s];
        r->room = r->len * 2 + 256; /* also for the copy, and misaligned */
        if (r->room * 4 > r->arena_len)
            r->room = r->len + 256;
        r->n_sets = max_size(1, min_size(r->rotate / r->room / 4, 256));
        for (size_t b = 0; b <= last; b++) {
            r->blocks = blocks[b];
            if ((b == last || blocks[b] != blocks[last]) &&
                is_worth(r, is_quick))
                measure(r);
        }
    }
}

/* Numbers of every kind, no two turns alike. */
static void fill_arena(struct run *r)
{
    static uint64_t bits[(4 << 20) / 8];
    uint64_t x = 88172645463325252;

    for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        bits[i] = x ^= x << 17;
    }
    for (size_t at = 0; at < r->arena_len + sizeof(bits); at += sizeof(bits))
        gpu_must(cu.MemcpyHtoD(r->arena + at, bits, sizeof(bits)),
                 "cuMemcpyHtoD");
}

int bench(const struct kernels *kernels, int is_quick, size_t most,
          const char *json)
{
    struct run r = {.kernels = kernels, .separator = "", .most = most};

    r.json = fopen(json, "w");
    if (!r.json) {
        fprintf(stderr, "kernels: cannot write %s: %s\n", json,
                strerror(errno));
        return 2;
    }
    gpu_must(cu.EventCreate(&began, CU_EVENT_DEFAULT), "cuEventCreate");
    gpu_must(cu.EventCreate(&ended, CU_EVENT_DEFAULT), "cuEventCreate");
    r.arena_len = most < ARENA / 128 ? 128 * most : ARENA;
    r.rotate = r.arena_len * 2 / 5;
    gpu_must(cu.MemAlloc(&r.arena, r.arena_len + (4 << 20)), "cuMemAlloc");
    fill_arena(&r);
    gpu_put_head(r.json, "kernels", &kernels->found);
    fprintf(r.json,
            "  \"processors\": %d, \"image_load_ms\": %.2f,\n"
            "  \"columns\": [\"kernel\", \"bytes\", \"blocks\", \"us\", "
            "\"GBps\", \"copy_us\", \"copy_GBps\", \"of_copy\"],\n"
            "  \"rows\": [",
            kernels->processors, kernels->load_ms);
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        r.subject = &subjects[i];
        bench_subject(&r, is_quick);
    }
    fputs("\n  ]\n}\n", r.json);
    gpu_must(cu.MemFree(r.arena), "cuMemFree");
    return fclose(r.json) ? 2 : 0;
}
