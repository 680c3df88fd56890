/* SPDX-License-Identifier: BSD-3-Clause */
/* op_scatter.c - a part of the root's vector to each rank: count elements, or
 * to each rank another amount.
 *
 * The size is that of the root's vector, of which (p-1)/p leave over its link.
 */
#include "benchmarks/bench.h"

static size_t given(const struct bench_case *c, int r)
{
    return c->in_counts ? c->in_counts[r] : c->count;
}

/* The other ranks' input must not matter: they have none. */
static void fill(const struct bench_case *c, void *in)
{
    size_t size = coll_type_size(c->type);
    char *at = in;

    for (int r = 0; r < c->ranks && c->rank == c->root;
         at += given(c, r++) * size) {
        struct bench_case part = bench_block(c, 0, given(c, r));

        bench_put(&part, bench_value, r, at);
    }
}

static size_t verify(const struct bench_case *c, const void *out)
{
    struct bench_case part = bench_block(c, 0, given(c, c->rank));

    return bench_differing(&part, bench_value, c->rank, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_scatter(in, out, c->count, c->type, c->root, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_scatterv(in, c->in_counts, NULL, out, given(c, c->rank),
                         c->type, c->root, comm, c->stream);
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
