/* SPDX-License-Identifier: BSD-3-Clause */
/* op_gather.c - count elements from each rank to the root, and the same with
 * ranks that give different amounts.
 *
 * The root's link takes in what all others give, p - 1 parts.
 */
#include "benchmarks/bench.h"

static size_t given(const struct bench_case *c, int r)
{
    return c->out_counts ? c->out_counts[r] : c->count;
}

static void fill(const struct bench_case *c, void *in)
{
    struct bench_case part = bench_block(c, 0, given(c, c->rank));

    bench_put(&part, bench_value, c->rank, in);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    size_t size = coll_type_size(c->type), n = 0;
    const char *at = out;

    for (int r = 0; r < c->ranks && c->rank == c->root;
         at += given(c, r++) * size) {
        struct bench_case part = bench_block(c, 0, given(c, r));

        n += bench_differing(&part, bench_value, r, at);
    }
    return n;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_gather(in, out, c->count, c->type, c->root, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_gatherv(in, given(c, c->rank), out, c->out_counts, NULL,
                        c->type, c->root, comm, c->stream);
}

const struct bench_op bench_gather = {
    .name = "gather",
    .collective = COLL_GATHER,
    .has_data = 1,
    .has_root = 1,
    .runs_ahead = 1,
    .out = BLOCKS_ROOT,
    .moved = bench_ranks,
    .traffic = bench_others,
    .fill = fill,
    .verify = verify,
    .run = run,
};

const struct bench_op bench_gatherv = {
    .name = "gatherv",
    .collective = COLL_GATHERV,
    .note = "Every other rank gives 3/2 of the size, the others 1/2",
    .has_data = 1,
    .has_root = 1,
    .has_counts = 1,
    .runs_ahead = 1,
    .out = BLOCKS_ROOT,
    .moved = bench_ranks,
    .traffic = bench_others,
    .fill = fill,
    .verify = verify,
    .run = run_uneven,
};
