/* SPDX-License-Identifier: BSD-3-Clause */
/* op_scan.c - `count` elements from each rank, reduced over the ranks up to the one that
 * gets the result.  The vector crosses a link of each rank at least once. */
#include "benchmarks/bench.h"

static long reduced(const struct bench_case *c, int rank, size_t index)
{
    return bench_reduced_first(c, rank + 1, index);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing(c, reduced, c->rank, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_scan(in, out, c->count, c->type, c->op, comm, c->stream);
}

const struct bench_op bench_scan = {
    .name = "scan",
    .collective = COLL_SCAN,
    .has_data = 1,
    .has_op = 1,
    .runs_ahead = 1,
    .moved = bench_one,
    .traffic = bench_one,
    .fill = bench_put_own,
    .verify = verify,
    .run = run,
};
