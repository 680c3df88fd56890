/* SPDX-License-Identifier: BSD-3-Clause */
/* op_gather.c - `count` elements from each rank to the root; and the same with
 * ranks that send different amounts.  The root's link receives what all others
 * send, p - 1 parts. */
#include "benchmarks/bench.h"

static void fill(const struct bench_case *c, void *in)
{
    bench_put_part(c, c->out_counts, in);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return c->rank == c->root ? bench_differing_parts(c, c->out_counts, out)
                              : 0;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_gather(in, out, c->count, c->type, c->root, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_gatherv(in, bench_count(c, c->out_counts, c->rank), out,
                        c->out_counts, NULL, c->type, c->root, comm, c->stream);
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
