/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring allreduce: reduce-scatter round the ring, then allgather round it.
 *
 * Each rank sends 2(p-1)/p of the n-byte vector, the least possible, in 2(p-1)
 * messages: T = 2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma.  Best for
 * large n.
 *
 *   p = 3, one column a rank, [x] = sum so far, X = sum over all ranks
 *     start      step 0       step 1      step 2      step 3
 *     a a a      a [a] a      a [a] A     A [a] A     A A A
 *     b b b      b b [b]      B b [b]     B B [b]     B B B
 *     c c c      [c] c c      [c] C c     [c] C C     C C C
 *
 * Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, v = coll__ring_place(pb->view, pb->rank);
    int left = coll__ring_at(pb->view, p, v - 1);
    int right = coll__ring_at(pb->view, p, v + 1);

    plan_copy(plan, coll__whole(pb, BUF_OUT), coll__own_in(pb));
    for (int s = 0; s < p - 1; s++) { /* reduce-scatter */
        struct coll__span tmp = coll__block(pb, BUF_TMP, v - s - 1);

        plan_send(plan, right, coll__block(pb, BUF_OUT, v - s));
        plan_recv(plan, left, tmp);
        plan_reduce(plan, coll__block(pb, BUF_OUT, v - s - 1), tmp);
    }
    plan_finish(pb, plan, coll__block(pb, BUF_OUT, v + 1));
    for (int s = 0; s < p - 1; s++) { /* allgather */
        plan_send(plan, right, coll__block(pb, BUF_OUT, v + 1 - s));
        plan_recv(plan, left, coll__block(pb, BUF_OUT, v - s));
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double rounds = pb->nranks - 1;
    double share = (double)coll__problem_bytes(pb) / pb->nranks;

    return rounds * (coll__cost_ring_reduced(pb->view, share) +
                     coll__cost_ring(pb->view, share)) +
           coll__cost_ring_fill(pb->view, share);
}

const struct coll__algo coll__algo_allreduce_ring = {
    .name = "ring",
    .what = "bandwidth-optimal ring, 2(p-1) steps",
    .serves = COLL_FOR(ALLREDUCE),
    .goes_apart = 1,
    .build = build,
    .cost = cost,
};
