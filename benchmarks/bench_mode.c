/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_mode.c - what each mode measures: which sizes, and how long. */
#include "benchmarks/bench.h"

const struct bench_mode bench_bw = {
    .name = "bw",
    .first = 4 << 10,
    .last = 64 << 20,
    .warmup = 5,
    .min_iters = 5,
    .max_iters = 500,
    .seconds = 0.25,
};

const struct bench_mode bench_lat = {
    .name = "lat",
    .first = 4,
    .last = 64 << 10,
    .warmup = 50,
    .min_iters = 100,
    .max_iters = 10000,
    .seconds = 0.25,
};

const struct bench_mode bench_p2p_bw = {
    .name = "bw",
    .first = 4 << 10,
    .last = 4 << 20,
    .warmup = 5,
    .min_iters = 5,
    .max_iters = 500,
    .seconds = 0.25,
};

const struct bench_mode bench_p2p_bibw = {
    .name = "bibw",
    .first = 4 << 10,
    .last = 4 << 20,
    .warmup = 5,
    .min_iters = 5,
    .max_iters = 500,
    .seconds = 0.25,
};
