/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_run.h - a benchmark while it runs; what bench.c and bench_window.c
 * share. */
#ifndef COLL_BENCHMARKS_BENCH_RUN_H
#define COLL_BENCHMARKS_BENCH_RUN_H

#include "benchmarks/bench.h"

struct bench {
    const struct bench_op *op;
    const struct bench_mode *mode;
    struct bench_args args;
    struct coll_comm *comm;
    const struct bench_device *device; /* NULL: the host */
    struct bench_buffers buffers;
    size_t *counts; /* [2 * ranks]: uneven parts of in, then of out */
    double *times;  /* of each iteration, s; or of each launch of a graph */
    int n_captured; /* calls of the graph that is captured; 0: none */
    double barrier; /* subtracted from each time, s */
    struct bench_beside *beside; /* NULL without --beside */
    double waited, waited_cpu;   /* of late ranks, and the CPU time of it, s */
    uint64_t errors;
    int has_warned;
};

/* ---- bench_window.c ------------------------------------------------------ */

/* Return 1 if a barrier ends each iteration. */
int bench_has_barrier(const struct bench *b);

/* Start one call on the buffers of pair i: in the stream, or on the host. */
int bench_call(const struct bench *b, const struct bench_case *c, int i);

/* Capture the calls of a graph for the iterations that follow, and launch it
 * once; on all ranks or on none. */
int bench_capture(struct bench *b, const struct bench_case *c);

/* Run n iterations back to back; each is a launch if a graph was captured.
 * Their seconds go to times, unless that is NULL. */
int bench_iterate(const struct bench *b, const struct bench_case *c, long n,
                  double *times);

/* Run n measured iterations; their times go to b->times.  The number of wrong elements
 * is added to *errors.  kept: the iterations use the same buffers; the results are
 * compared at the end, and again after a further run with other content.  varied: each
 * iteration has other buffers and content. */
int bench_measure_kept(struct bench *b, struct bench_case *c, long n,
                       uint64_t *errors);
int bench_measure_varied(struct bench *b, struct bench_case *c, long n,
                         uint64_t *errors);

/* ---- bench_overlap.c ----------------------------------------------------- */

/* Measure how much of the case hides behind a kernel, and check its results.
 * The iterations before have warmed it up. */
int bench_overlap(const struct bench *b, struct bench_case *c,
                  struct bench_result *result);

#endif
