/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms_kernels.c - kernels that wait for each other, and time slices.
 *
 * Every kernel gives up after LIMIT, so what cannot run side by side costs that long
 * and no more.
 */
#include "tests/gpu/mechanisms.h"

#include <stdlib.h>

#define LIMIT_NS 2000000000ULL

enum { TIMES = 100 };

/* Round trips from..to by a kernel of each rank; how many came about. */
static uint32_t trips(struct rank *r, CUdeviceptr mine, CUdeviceptr theirs,
                      uint32_t n)
{
    unsigned long long limit = LIMIT_NS;
    uint32_t from = r->k + 1, to = from + n, first = r->rank == 0;
    CUdeviceptr done = word_dev(r, 2);

    r->k += n;
    TRY(gpu_launch(
        r->pingpong, 1, 1, r->s,
        (void *[]){&mine, &theirs, &from, &to, &first, &limit, &done}));
    TRY(cu.StreamSynchronize(r->s));
    return r->share->words[r->rank][2].word;
}

static void long_trips(struct rank *r, const char *where, CUdeviceptr mine,
                       CUdeviceptr theirs, uint32_t n)
{
    double times[5], began;
    uint32_t done = 0;

    for (int i = 0; i < 5; i++) {
        rank_barrier(r);
        began = gpu_now();
        done = trips(r, mine, theirs, n);
        times[i] = (gpu_now() - began) / (done ? done : 1);
    }
    if (r->rank)
        return;
    figure_add(r, "us", 1e6 * median_of(times, 5),
               "round trip within kernels, flags in %s memory", where);
    figure_add(r, "", done, "of %u round trips came about, %s memory", n,
               where);
}

/* One launch a round trip, waited for by the host. */
static void short_trips(struct rank *r, const char *where, CUdeviceptr mine,
                        CUdeviceptr theirs)
{
    double times[TIMES];
    int met = 0;

    for (int i = 0; i < TIMES; i++) {
        double began = gpu_now();

        met += trips(r, mine, theirs, 1) == 1;
        times[i] = gpu_now() - began;
        if (met <= i - 2) /* nothing runs side by side here */
            rank_fail(r, "kernels of two ranks do not meet");
    }
    if (r->rank)
        return;
    figure_add(r, "us", 1e6 * median_of(times, TIMES),
               "launch, round trip, synchronize, %s memory, p50", where);
    figure_add(r, "us", 1e6 * part_of(times, TIMES, 0.99),
               "launch, round trip, synchronize, %s memory, p99", where);
}

static void threads(struct rank *r)
{
    CUdeviceptr mine, theirs;

    rank_start(r);
    mine = device_flag(r, r->rank, !r->rank, 0);
    theirs = device_flag(r, !r->rank, r->rank, 0);
    long_trips(r, "device", mine, theirs, 1000);
    rank_barrier(r);
    short_trips(r, "device", mine, theirs);
    mine = host_flag(r, r->rank, !r->rank, 1);
    theirs = host_flag(r, !r->rank, r->rank, 1);
    long_trips(r, "host", mine, theirs, 200);
    rank_barrier(r);
    short_trips(r, "host", mine, theirs);
}

static void processes(struct rank *r)
{
    rank_start(r);
    long_trips(r, "device", device_flag(r, r->rank, !r->rank, 0),
               device_flag(r, !r->rank, r->rank, 0), 20);
}

/* A kernel that watches the clock sees when it was taken off the device. */
static void slices(struct rank *r)
{
    enum { MOST = 4000 };
    unsigned long long gap = 20000, length = 400000000;
    uint64_t *out = calloc(2 + 2 * MOST, sizeof(*out));
    double away[MOST], runs[MOST];
    CUdeviceptr at = r->area;
    unsigned most = MOST;
    int n;

    rank_start(r);
    at = r->area + (1 << 20);
    rank_barrier(r);
    TRY(gpu_launch(r->gaps, 1, 1, r->s, (void *[]){&at, &most, &gap, &length}));
    TRY(cu.StreamSynchronize(r->s));
    TRY(cu.MemcpyDtoH(out, at, (2 + 2 * MOST) * sizeof(*out)));
    n = (int)out[0];
    figure_add(r, "", n, "times taken off the device in 400 ms, rank %d",
               r->rank);
    for (int i = 0; i < n; i++) {
        uint64_t since = i ? out[2 * i] + out[2 * i + 1] : out[1];

        away[i] = (double)out[2 + 2 * i + 1] * 1e-9;
        runs[i] = (double)(out[2 + 2 * i] - since) * 1e-9;
    }
    if (n) {
        figure_add(r, "us", 1e6 * median_of(away, n), "away, rank %d, p50",
                   r->rank);
        figure_add(r, "us", 1e6 * part_of(away, n, 1), "away, rank %d, most",
                   r->rank);
        figure_add(r, "us", 1e6 * median_of(runs, n), "running, rank %d, p50",
                   r->rank);
    }
    free(out);
}

static const struct measurement all[] = {
    {"kernels_meet", 2, 1,
     "1.5 us a round trip in device memory, 3 us in host memory; launch and "
     "synchronize 8 us",
     threads},
    {"kernels_meet", 2, 0,
     "two time slices a round trip, some 2 to 4 ms: a kernel that waits keeps "
     "the device for its slice; with MPS as threads",
     processes},
    {"time_slices", 1, 0, "alone it is hardly ever taken off", slices},
    {"time_slices", 2, 0,
     "slices of about 2 ms, half the time each; with MPS none", slices},
};
const struct measurement_list of_kernels = {all, ARRAY_LEN(all)};
