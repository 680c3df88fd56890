/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allgather.c - `count` elements from each rank to each rank; and the same
 * with ranks that send different amounts.  Each rank's link receives at least
 * what all others send, p - 1 parts. */
#include "benchmarks/bench.h"

static void fill(const struct bench_case *c, void *in)
{
    bench_put_part(c, c->out_counts, in);
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing_parts(c, c->out_counts, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_allgather(in, out, c->count, c->type, comm, c->stream);
}

static int run_uneven(const struct bench_case *c, const void *in, void *out,
                      struct coll_comm *comm)
{
    return coll_allgatherv(in, out, c->out_counts, NULL, c->type, comm,
                           c->stream);
}

const struct bench_op bench_allgather = {
    .name = "allgather",
    .collective = COLL_ALLGATHER,
    .has_data = 1,
    .out = BLOCKS_EACH,
    .moved = bench_ranks,
    .traffic = bench_others,
    .fill = fill,
    .verify = verify,
    .run = run,
};

const struct bench_op bench_allgatherv = {
    .name = "allgatherv",
    .collective = COLL_ALLGATHERV,
    .note = "Every other rank gives 3/2 of the size, the others 1/2",
    .has_data = 1,
    .has_counts = 1,
    .out = BLOCKS_EACH,
    .moved = bench_ranks,
    .traffic = bench_others,
    .fill = fill,
    .verify = verify,
    .run = run_uneven,
};
