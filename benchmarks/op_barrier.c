/* SPDX-License-Identifier: BSD-3-Clause */
/* op_barrier.c - no data; only the time counts. */
#include "benchmarks/bench.h"

static void fill(const struct bench_case *c, void *in)
{
    (void)c;
    (void)in;
}

static size_t verify(const struct bench_case *c, const void *out)
{
    (void)c;
    (void)out;
    return 0;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    (void)c;
    (void)in;
    (void)out;
    return coll_barrier(comm, c->stream);
}

const struct bench_op bench_barrier = {
    .name = "barrier",
    .collective = COLL_BARRIER,
    .moved = bench_zero,
    .traffic = bench_zero,
    .fill = fill,
    .verify = verify,
    .run = run,
};
