/* SPDX-License-Identifier: BSD-3-Clause */
/* k-nomial tree reduce, radix 4: sums go up a tree with half the levels of a
 * binomial one.
 *
 * T = log4(p) (alpha + 2 gap + 3 n beta + 3 n gamma).  Best for tiny n if a
 * message's latency is well above the gap between two messages.  The top is
 * rank 0, which sends the result to the root.  If any order will do, the top is the
 * root itself.
 *
 *   p = 5, root 0      (0 1) 2 3 4      1->0, then 2->0 3->0 4->0
 *
 * Source: the k-nomial trees of Chan et al., Concurr. Comput. Pract. Exp.
 * 19(13), 2007.
 */
#include "lib/algo/knomial.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int is_root = pb->rank == pb->root;
    int top = pb->order == ORDER_FREE ? pb->root : 0;
    struct coll__span sum = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);

    coll__knomial_reduce(pb, plan, top, sum);
    if (pb->rank == top && !is_root)
        plan_send(plan, pb->root, sum);
    if (is_root && pb->rank != top)
        plan_recv(plan, top, sum);
    if (is_root)
        plan_finish(pb, plan, sum);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb);
    double time =
        coll__knomial_up_cost(pb, pb->order == ORDER_FREE ? pb->root : 0);

    if (pb->order != ORDER_FREE && pb->root)
        time += coll__cost_message(pb->view, pb->nranks, n);
    return time;
}

const struct coll__algo coll__algo_reduce_knomial = {
    .name = "knomial",
    .what = "sums up a tree of radix 4",
    .serves = COLL_FOR(REDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
