/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct reduce: every rank sends its vector to the root, which combines them
 * (in the canonical tree, if the order matters).
 *
 * T = alpha + (p-2) gap + (p-1) n beta + p n gamma.  Best for few ranks, or
 * if the root takes a message from its links in much less than the latency.  The
 * root needs scratch for p-1 vectors if the order matters.
 *
 *   p = 4, root 1
 *     0-a->1  2-c->1  3-d->1, then rank 1: (a b) (c d), or b a d c
 *
 * Source: Chan et al., Concurr. Comput. Pract. Exp. 19(13), 2007 (the linear
 * form).
 */
#include "lib/algo/combine.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__operands all = {p, r, coll__whole(pb, BUF_OUT)};

    if (r != pb->root) {
        plan_send(plan, pb->root, coll__own_in(pb));
        return plan_status(plan);
    }
    plan_copy(plan, all.own, coll__own_in(pb));
    coll__plan_combine(plan, &all, pb->order);
    plan_finish(pb, plan, all.own);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb);
    int p = pb->nranks;

    return coll__combine_cost(pb->view, pb->order, n,
                              coll__cost_fan_in(pb->view, p - 1, p - 1, n), 1);
}

const struct coll__algo coll__algo_reduce_direct = {
    .name = "direct",
    .what = "every vector straight to the root",
    .serves = COLL_FOR(REDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
