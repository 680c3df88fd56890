/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_run.h - a benchmark while it runs: bench.c, which orders what is measured,
 * and bench_window.c, which measures. */
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
    size_t *counts; /* [2 * ranks]: in's, then out's, of uneven parts */
    double *times;  /* of each iteration, s; of each launch of a graph */
    int n_captured; /* calls of the graph that the device has; 0: none */
    double barrier; /* to subtract from each time, s */
    struct bench_beside *beside; /* NULL without --beside */
    double waited, waited_cpu;   /* for late ranks, and the CPU time of it, s */
    uint64_t errors;
    int has_warned;
};

/* ---- bench_window.c ------------------------------------------------------ */

/* Does a barrier end each iteration? */
int bench_has_barrier(const struct bench *b);

/* Put one call on the buffers of pair i into the stream, or run it on the host. */
int bench_call(const struct bench *b, const struct bench_case *c, int i);

/* Capture the calls of a graph, for the iterations that follow, and launch it once;
 * on all ranks or on none. */
int bench_capture(struct bench *b, const struct bench_case *c);

/* Run n iterations back to back, each a launch where a graph was captured; their
 * seconds to times, unless that is NULL. */
int bench_iterate(const struct bench *b, const struct bench_case *c, long n,
                  double *times);

/* The n iterations that count, to b->times: in one window, whose results are
 * compared, as are those of a further run with other content; or each on buffers and
 * content of its own.  Wrong elements are added to *errors. */
int bench_measure_kept(struct bench *b, struct bench_case *c, long n,
                       uint64_t *errors);
int bench_measure_varied(struct bench *b, struct bench_case *c, long n,
                         uint64_t *errors);

/* ---- bench_overlap.c ----------------------------------------------------- */

/* Measure how much of the case hides behind a kernel, and check its results; after its
 * iterations, which warm it up. */
int bench_overlap(const struct bench *b, struct bench_case *c,
                  struct bench_result *result);

#endif
