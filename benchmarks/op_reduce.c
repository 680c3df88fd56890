/* SPDX-License-Identifier: BSD-3-Clause */
/* op_reduce.c - `count` elements from each rank, reduced, to the root.  The
 * vector crosses a link of each rank at least once. */
#include "benchmarks/bench.h"

static long reduced(const struct bench_case *c, int rank, size_t index)
{
    (void)rank;
    return bench_reduced(c, index);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return c->rank == c->root ? bench_differing(c, reduced, 0, out) : 0;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_reduce(in, out, c->count, c->type, c->op, c->root, comm,
                       c->stream);
}

const struct bench_op bench_reduce = {
    .name = "reduce",
    .collective = COLL_REDUCE,
    .has_data = 1,
    .has_op = 1,
    .has_root = 1,
    .runs_ahead = 1,
    .moved = bench_one,
    .traffic = bench_one,
    .fill = bench_put_own,
    .verify = verify,
    .run = run,
};
