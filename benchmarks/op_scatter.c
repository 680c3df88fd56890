/* SPDX-License-Identifier: BSD-3-Clause */
/* op_scatter.c - a part of the root's vector to each rank: `count` elements, or
 * another amount for each rank.  The size is that of the root's vector; (p-1)/p
 * of it leave over its link. */
#include "benchmarks/bench.h"

/* The other ranks have no input. */
static void fill(const struct bench_case *c, void *in)
{
    if (c->rank == c->root)
        bench_put_parts(c, c->in_counts, in);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing_part(c, c->in_counts, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_scatter(in, out, c->count, c->type, c->root, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_scatterv(in, c->in_counts, NULL, out,
                         bench_count(c, c->in_counts, c->rank), c->type,
                         c->root, comm, c->stream);
}

const struct bench_op bench_scatter = {
    .name = "scatter",
    .collective = COLL_SCATTER,
    .has_data = 1,
    .has_root = 1,
    .runs_ahead = 1,
    .in = BLOCKS_ROOT,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run,
};

const struct bench_op bench_scatterv = {
    .name = "scatterv",
    .collective = COLL_SCATTERV,
    .note = "Every other rank gets 3/2 of an even share, the others 1/2",
    .has_data = 1,
    .has_root = 1,
    .has_counts = 1,
    .runs_ahead = 1,
    .in = BLOCKS_ROOT,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run_uneven,
};
