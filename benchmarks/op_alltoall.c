/* SPDX-License-Identifier: BSD-3-Clause */
/* op_alltoall.c - a block from each rank to each rank: `count` elements, or
 * another amount for each pair.  The size is all that a rank sends; (p-1)/p of
 * it leave over its link. */
#include "benchmarks/bench.h"

/* Return what rank `from` sends to rank `to`, as if each pair was a rank. */
static struct bench_case block_of(const struct bench_case *c, int from, int to,
                                  size_t count)
{
    return bench_block(c, from * c->ranks + to, count);
}

static void fill(const struct bench_case *c, void *in)
{
    size_t size = coll_type_size(c->type), count;
    char *at = in;

    for (int r = 0; r < c->ranks; r++, at += count * size) {
        struct bench_case block;

        count = bench_count(c, c->in_counts, r);
        block = block_of(c, c->rank, r, count);
        bench_put(&block, bench_value, c->rank, at);
    }
}

static size_t verify(const struct bench_case *c, const void *out)
{
    size_t size = coll_type_size(c->type), n = 0, count;
    const char *at = out;

    for (int r = 0; r < c->ranks; r++, at += count * size) {
        struct bench_case block;

        count = bench_count(c, c->out_counts, r);
        block = block_of(c, r, c->rank, count);
        n += bench_differing(&block, bench_value, r, at);
    }
    return n;
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_alltoall(in, out, c->count, c->type, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_alltoallv(in, c->in_counts, NULL, out, c->out_counts, NULL,
                          c->type, comm, c->stream);
}

const struct bench_op bench_alltoall = {
    .name = "alltoall",
    .collective = COLL_ALLTOALL,
    .has_data = 1,
    .in = BLOCKS_EACH,
    .out = BLOCKS_EACH,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run,
};

const struct bench_op bench_alltoallv = {
    .name = "alltoallv",
    .collective = COLL_ALLTOALLV,
    .note = "Half of the pairs exchange 3/2 of an even share, half of them 1/2",
    .has_data = 1,
    .has_counts = 1,
    .in = BLOCKS_EACH,
    .out = BLOCKS_EACH,
    .moved = bench_one,
    .traffic = bench_share,
    .fill = fill,
    .verify = verify,
    .run = run_uneven,
};
