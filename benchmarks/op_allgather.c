/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allgather.c - count elements from each rank to each rank.
 *
 * p times a rank's bytes are moved to each rank, of which its link carries
 * those of the p - 1 others.
 */
#include "benchmarks/bench.h"

static int n_blocks(int ranks) { return ranks; }
static double moved(int ranks) { return ranks; }
static double traffic(int ranks) { return ranks - 1; }

static void fill(const struct bench_case *c, void *in)
{
    bench_put(c, bench_value, c->rank, in);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    size_t len = c->count * coll_type_size(c->type), n = 0;

    for (int r = 0; r < c->ranks; r++)
        n += bench_differing(c, bench_value, r,
                             (const char *)out + (size_t)r * len);
    return n;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_allgather(in, out, c->count, c->type, comm, NULL);
}

const struct bench_op bench_allgather = {
    .name = "allgather",
    .collective = COLL_ALLGATHER,
    .has_data = 1,
    .n_blocks = n_blocks,
    .moved = moved,
    .traffic = traffic,
    .fill = fill,
    .verify = verify,
    .run = run,
};
