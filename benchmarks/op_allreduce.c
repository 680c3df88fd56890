/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allreduce.c - count elements from each rank, reduced, to each rank.
 *
 * Any algorithm sends at least 2(p-1)/p of a rank's bytes over each rank's
 * link, so that busbw is comparable with the link's speed for every p.
 */
#include "benchmarks/bench.h"

static double traffic(int ranks) { return 2.0 * (ranks - 1) / ranks; }

static long reduced(const struct bench_case *c, int rank, size_t index)
{
    (void)rank;
    return bench_reduced(c, index);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing(c, reduced, 0, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_allreduce(in, out, c->count, c->type, c->op, comm, c->stream);
}

const struct bench_op bench_allreduce = {
    .name = "allreduce",
    .collective = COLL_ALLREDUCE,
    .has_data = 1,
    .has_op = 1,
    .moved = bench_one,
    .traffic = traffic,
    .fill = bench_put_own,
    .verify = verify,
    .run = run,
};
