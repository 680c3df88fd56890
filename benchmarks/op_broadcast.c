/* SPDX-License-Identifier: BSD-3-Clause */
/* op_broadcast.c - count elements from the root to each rank; the root's link
 * carries each byte once at least. */
#include "benchmarks/bench.h"

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing(c, bench_value, c->root, out);
}

static int run(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm)
{
    return coll_broadcast(in, out, c->count, c->type, c->root, comm, c->stream);
}

const struct bench_op bench_broadcast = {
    .name = "broadcast",
    .collective = COLL_BROADCAST,
    .has_data = 1,
    .has_root = 1,
    .runs_ahead = 1,
    .moved = bench_one,
    .traffic = bench_one,
    .fill = bench_put_own, /* all fill; the root's alone counts */
    .verify = verify,
    .run = run,
};
