/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms_copies.c - how fast bytes move, by copies and by a kernel.
 *
 * Bytes are counted once (a copy reads and writes each: the memory moves twice as
 * many).  Copies walk through 256 MiB, so that small ones do not find their bytes
 * in the L2 cache of an earlier one.
 */
#include "tests/gpu/mechanisms.h"

enum { REPEATS = 5 };
#define WALK ((size_t)256 << 20)

struct ends {
    CUdeviceptr to, from;
};

typedef void copy_fn(struct rank *r, CUdeviceptr to, CUdeviceptr from,
                     size_t len);

static void by_copy(struct rank *r, CUdeviceptr to, CUdeviceptr from,
                    size_t len)
{
    TRY(cu.MemcpyDtoDAsync(to, from, len, r->s));
}

static void by_kernel(struct rank *r, CUdeviceptr to, CUdeviceptr from,
                      size_t len)
{
    unsigned long long n = len / 16;
    unsigned long long blocks = (n + 4 * 512 - 1) / (4 * 512);

    if (blocks > 528) /* four of 512 threads on each of 132 processors */
        blocks = 528;
    TRY(gpu_launch(r->copy16, (unsigned)blocks, 512, r->s,
                   (void *[]){&to, &from, &n}));
}

static void to_device(struct rank *r, CUdeviceptr to, CUdeviceptr from,
                      size_t len)
{
    TRY(cu.MemcpyHtoDAsync(to, (void *)from, len, r->s));
}

static void to_host(struct rank *r, CUdeviceptr to, CUdeviceptr from,
                    size_t len)
{
    TRY(cu.MemcpyDtoHAsync((void *)to, from, len, r->s));
}

/* is_alone: rank 0 measures and the others wait for it at the next barrier. */
static void measure(struct rank *r, const char *name, copy_fn *copy,
                    struct ends ends, size_t len, int is_alone)
{
    size_t times = ((size_t)1 << 30) / len;
    double seconds[REPEATS];

    times = times < 4 ? 4 : times > 400 ? 400 : times;
    for (int i = -1; i < REPEATS; i++) {
        double began;
        size_t at = 0;

        if (!is_alone)
            rank_barrier(r);
        began = gpu_now();
        for (size_t j = 0; j < times; j++, at = (at + len) % WALK)
            copy(r, ends.to + at, ends.from + at, len);
        TRY(cu.StreamSynchronize(r->s));
        if (i >= 0)
            seconds[i] = gpu_now() - began;
    }
    figure_add(r, "GB/s",
               1e-9 * (double)(len * times) / median_of(seconds, REPEATS),
               "%s, %zu KiB, rank %d", name, len >> 10, r->rank);
}

static const size_t sizes[] = {64 << 10, 1 << 20,  4 << 20,
                               16 << 20, 64 << 20, 256 << 20};

static CUdeviceptr buffer(struct rank *r)
{
    CUdeviceptr at;

    TRY(cu.MemAlloc(&at, WALK));
    TRY(cu.MemsetD32Async(at, 0x3c5a1234u + (unsigned)r->rank, WALK / 4, r->s));
    TRY(cu.StreamSynchronize(r->s));
    return at;
}

static void within(struct rank *r)
{
    struct ends ends;

    rank_start(r);
    ends.to = buffer(r);
    ends.from = buffer(r);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        measure(r, "own memory by cuMemcpyDtoDAsync", by_copy, ends, sizes[i],
                0);
        measure(r, "own memory by a kernel", by_kernel, ends, sizes[i], 0);
    }
}

/* Each rank reads the other one's buffer; then rank 0 alone. */
static void imported(struct rank *r)
{
    struct ends ends;

    rank_start(r);
    ends.to = buffer(r);
    ends.from = buffer(r);
    r->share->areas[r->rank] = ends.from;
    TRY(cu.IpcGetMemHandle(&r->share->handles[r->rank], ends.from));
    rank_barrier(r);
    TRY(cu.IpcOpenMemHandle(&ends.from, r->share->handles[!r->rank],
                            CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        measure(r, "import, both ranks, by cuMemcpyDtoDAsync", by_copy, ends,
                sizes[i], 0);
        measure(r, "import, both ranks, by a kernel", by_kernel, ends, sizes[i],
                0);
    }
    rank_barrier(r);
    for (size_t i = 0; r->rank == 0 && i < ARRAY_LEN(sizes); i++) {
        measure(r, "import, one rank, by cuMemcpyDtoDAsync", by_copy, ends,
                sizes[i], 1);
        measure(r, "import, one rank, by a kernel", by_kernel, ends, sizes[i],
                1);
    }
}

static void pinned(struct rank *r)
{
    struct ends in, out;
    void *host;

    rank_start(r);
    TRY(cu.MemHostAlloc(&host, WALK, CU_MEMHOSTALLOC_PORTABLE));
    in.to = buffer(r);
    in.from = (CUdeviceptr)host;
    out.to = (CUdeviceptr)host;
    out.from = in.to;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        measure(r, "pinned to device", to_device, in, sizes[i], 0);
        measure(r, "device to pinned", to_host, out, sizes[i], 0);
    }
}

static const struct measurement all[] = {
    {"copies_within", 1, 0,
     "H100 3.35 TB/s of memory: 1300 GB/s from 64 MiB by either; a kernel is "
     "ahead below 4 MiB; 64 KiB 30 GB/s, bound by 2 us a launch",
     within},
    {"copies_within", 2, 0, "half each, the sum as one alone", within},
    {"copies_of_import", 2, 0,
     "an import is as fast as own memory; two at once half each", imported},
    {"copies_of_host", 1, 0, "PCIe 5 x16: 55 GB/s from 1 MiB", pinned},
};
const struct measurement_list of_copies = {all, ARRAY_LEN(all)};
