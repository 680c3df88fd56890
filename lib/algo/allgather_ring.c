/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring allgather: each rank passes on the block that it received last.
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
    const struct coll__view *view = pb->view;
    int p = pb->nranks, v = coll__ring_place(view, pb->rank);

    plan_copy(plan, coll__part(pb, BUF_OUT, pb->rank), coll__own_in(pb));
    for (int s = 0; s < p - 1; s++) {
        int had = coll__ring_at(view, p, v - s);
        int gets = coll__ring_at(view, p, v - s - 1);

        plan_send(plan, coll__ring_at(view, p, v + 1),
                  coll__part(pb, BUF_OUT, had));
        plan_recv(plan, coll__ring_at(view, p, v - 1),
                  coll__part(pb, BUF_OUT, gets));
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__mean_part(pb, BUF_OUT);

    return (pb->nranks - 1) * coll__cost_ring(pb->view, n) +
           coll__cost_ring_fill(pb->view, n);
}

const struct coll__algo coll__algo_allgather_ring = {
    .name = "ring",
    .what = "each block once round the ring, p-1 steps",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .goes_apart = 1,
    .build = build,
    .cost = cost,
};
