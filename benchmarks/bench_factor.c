/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_factor.c - how many bytes a collective moves for each byte of `in`, as
 * nccl-tests count them (its doc/PERFORMANCE.md). */
#include "benchmarks/bench.h"

double bench_zero(int ranks)
{
    (void)ranks;
    return 0;
}

double bench_one(int ranks)
{
    (void)ranks;
    return 1;
}

double bench_ranks(int ranks) { return ranks; }
double bench_others(int ranks) { return ranks - 1; }
double bench_share(int ranks) { return (ranks - 1.0) / ranks; }

double bench_window(int ranks)
{
    (void)ranks;
    return BENCH_WINDOW;
}

double bench_windows(int ranks) { return 2 * bench_window(ranks); }
