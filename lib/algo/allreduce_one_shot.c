/* SPDX-License-Identifier: BSD-3-Clause */
/* One-shot allreduce: every rank sends its whole vector to every other rank, and
 * each rank combines all vectors in the canonical tree.
 *
 * T = alpha + (p-2) gap + (p-1) n beta + p n gamma: one step, the least possible
 * latency.  Best for tiny n and few ranks; scratch of p-1 vectors.
 *
 *   p = 3, one column a rank
 *     start    messages                         end
 *     a b c    1: a->1 b->2 c->0                (a b) c   (a b) c   (a b) c
 *              2: a->2 b->0 c->1
 *
 * Source: the direct exchange of Chan et al., Concurr. Comput. Pract. Exp.
 * 19(13), 2007.
 */
#include "lib/algo/combine.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__operands all = {p, r, coll__whole(pb, BUF_OUT)};

    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, coll__own_in(pb));
    plan_copy(plan, all.own, coll__own_in(pb));
    /* the same bits on every rank */
    coll__plan_combine(plan, &all, ORDER_CANONICAL);
    plan_finish(pb, plan, all.own);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb);

    return coll__combine_cost(pb->view, ORDER_CANONICAL, n,
                              coll__cost_all_same(pb->view, n), 0);
}

const struct coll__algo coll__algo_allreduce_one_shot = {
    .name = "one_shot",
    .what = "every vector to every rank, one step",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
