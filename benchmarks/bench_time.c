/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_time.c - clocks and pauses. */
#include "benchmarks/bench.h"

double bench_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_pause(double seconds)
{
    double whole = (double)(time_t)seconds;
    struct timespec t = {(time_t)seconds, (long)((seconds - whole) * 1e9)};

    while (nanosleep(&t, &t))
        ;
}
