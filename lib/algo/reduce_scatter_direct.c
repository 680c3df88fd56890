/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct reduce-scatter: every rank sends each part to the part's rank, which
 * combines the p operands of its part (in the canonical tree, if the order matters).
 *
 * With n bytes a part, T = alpha + (p-2) gap + (p-1) n beta + p n gamma: one
 * step, each byte sent once.  Best for small n if there is a link between any
 * two ranks.  It needs scratch for p-1 parts if the order matters.
 *
 *   p = 3, one column a rank, parts from the top
 *     start       messages              end
 *     a0 b0 c0    1: a1->1 b2->2 c0->0  a0+b0+c0     .        .
 *     a1 b1 c1    2: a2->2 b0->0 c1->1      .     a1+b1+c1    .
 *     a2 b2 c2                              .        .     a2+b2+c2
 *
 * Source: Chan et al., Concurr. Comput. Pract. Exp. 19(13), 2007.
 */
#include "lib/algo/combine.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__operands all = {p, r, coll__whole(pb, BUF_OUT)};

    plan_copy(plan, all.own, coll__own_in(pb));
    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, coll__part(pb, BUF_IN, r + d));
    coll__plan_combine(plan, &all, pb->order);
    plan_finish(pb, plan, all.own);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = coll__mean_part(pb, BUF_IN);

    return coll__combine_cost(pb->view, pb->order, n,
                              coll__cost_all(pb->view, n), 0);
}

const struct coll__algo coll__algo_reduce_scatter_direct = {
    .name = "direct",
    .what = "each part straight to its rank, one step",
    .serves = COLL_FOR(REDUCE_SCATTER) | COLL_FOR(REDUCE_SCATTERV),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
