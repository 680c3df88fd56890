/* SPDX-License-Identifier: BSD-3-Clause */
/* Chain reduce: each rank adds its vector to what comes from the next one, and
 * passes the sum on towards the root.
 *
 * The pass `split` cuts the vector into k pieces, so all links are busy at
 * once: T = (p-1) (alpha + n/k (beta + gamma)) + (k-1) n/k max(beta, gamma),
 * near n max(beta, gamma) for large n and any p.  The chain is the ring, cut
 * after the root.
 *
 *   p = 4, root 2, pieces x y z    1 -> 0 -> 3 -> 2
 *     time 0: 1-x->0      time 1: 1-y->0-x->3      time 2: 1-z->0-y->3-x->2
 *
 * Source: Barnett et al., J. Parallel Distrib. Comput. 44(1), 1997 (pipelined
 * broadcast, upside down).
 */
#include "lib/algo/combine.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    const struct coll__view *view = pb->view;
    int p = pb->nranks, is_root = pb->rank == pb->root;
    int place = coll__ring_place(view, pb->rank);
    int v = (place - coll__ring_place(view, pb->root) + p) % p;
    struct coll__span own = coll__own_in(pb);
    struct coll__span sum = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);

    if (v + 1 < p) {
        plan_absorb(plan, coll__ring_at(view, p, place + 1), sum, own,
                    coll__scratch(sum, 0));
        own = sum;
    }
    if (!is_root) {
        plan_send(plan, coll__ring_at(view, p, place - 1), own);
        return plan_status(plan);
    }
    plan_copy(plan, sum, own); /* if there is one rank */
    plan_finish(pb, plan, sum);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), k = coll__pieces(view, n);
    double work = coll__cost_work(view, n / k);
    double next = coll__cost_chain_next(view, pb->root, n / k);

    if (pb->nranks < 2)
        return 0;
    return (pb->nranks - 1) * (coll__cost_chain(view, pb->root, n / k) + work) +
           (k - 1) * (next > work ? next : work);
}

const struct coll__algo coll__algo_reduce_chain = {
    .name = "chain",
    .what = "pieces from rank to rank, all links busy",
    .serves = COLL_FOR(REDUCE),
    .build = build,
    .cost = cost,
};
