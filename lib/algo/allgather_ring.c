/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring allgather: each rank passes on the block that it got last.
 *
 * With n bytes from each rank, T = (p - 1) (alpha + n beta).  Best for large n:
 * every byte goes straight to its place, and only between neighbours.
 *
 *   p = 3, one column a rank
 *     start      step 0      step 1
 *     a . .      a a .       a a a
 *     . b .      . b b       b b b
 *     . . c      c . c       c c c
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    if (!pb->in_place)
        plan_copy(plan, coll__slots(pb, BUF_OUT, r, 1),
                  coll__whole(pb, BUF_IN));
    for (int s = 0; s < p - 1; s++) {
        int had = (r - s + p) % p, gets = (r - s - 1 + p) % p;

        plan_send(plan, (r + 1) % p, coll__slots(pb, BUF_OUT, had, 1));
        plan_recv(plan, (r + p - 1) % p, coll__slots(pb, BUF_OUT, gets, 1));
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb, const struct coll__cost *c)
{
    return (pb->nranks - 1) *
           (c->alpha + (double)coll__problem_bytes(pb) * c->beta);
}

const struct coll__algo coll__algo_allgather_ring = {
    .name = "ring",
    .what = "each block once round the ring, p-1 steps",
    .collective = COLL_ALLGATHER,
    .build = build,
    .cost = cost,
};
