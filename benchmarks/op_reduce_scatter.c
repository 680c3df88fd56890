/* SPDX-License-Identifier: BSD-3-Clause */
/* op_reduce_scatter.c - a vector from each rank, reduced; each rank receives
 * one block of the result: `count` elements, or another amount for each rank.
 * The size is that of the vector; at least (p-1)/p of it leave over each rank's
 * link. */
#include "benchmarks/bench.h"

static long reduced(const struct bench_case *c, int rank, size_t index)
{
    (void)rank;
    return bench_reduced(c, index);
}

static void fill(const struct bench_case *c, void *in)
{
    size_t size = coll_type_size(c->type);
    char *at = in;

    for (int r = 0; r < c->ranks;
         at += bench_count(c, c->in_counts, r++) * size) {
        struct bench_case block =
            bench_block(c, r, bench_count(c, c->in_counts, r));

        bench_put(&block, bench_value, c->rank, at);
    }
}

static size_t verify(const struct bench_case *c, const void *out)
{
    struct bench_case block =
        bench_block(c, c->rank, bench_count(c, c->in_counts, c->rank));

    return bench_differing(&block, reduced, 0, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_reduce_scatter(in, out, c->count, c->type, c->op, comm,
                               c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_reduce_scatterv(in, out, c->in_counts, c->type, c->op, comm,
                                c->stream);
}

const struct bench_op bench_reduce_scatter = {
    .name = "reduce_scatter",
    .collective = COLL_REDUCE_SCATTER,
    .has_data = 1,
    .has_op = 1,
    .in = BLOCKS_EACH,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run,
};

const struct bench_op bench_reduce_scatterv = {
    .name = "reduce_scatterv",
    .collective = COLL_REDUCE_SCATTERV,
    .note = "Every other rank gets 3/2 of an even share, the others 1/2",
    .has_data = 1,
    .has_op = 1,
    .has_counts = 1,
    .in = BLOCKS_EACH,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run_uneven,
};
