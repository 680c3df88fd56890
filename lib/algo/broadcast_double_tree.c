/* SPDX-License-Identifier: BSD-3-Clause */
/* Double binary tree broadcast: half of the vector goes down one tree, the
 * other half down a second one whose inner nodes are the first one's leaves
 * (double_tree.h).  The trees span all ranks but the root, which is above both.
 *
 * The pass `split` cuts each half into k pieces; with m = n / 2k bytes,
 * T = log2(p) (alpha + gap + 2 m beta) + 2 (k-1) (gap + m beta):
 * near the chain's n beta for large n, with log2(p) instead of p messages one
 * after the other.  Best for large p and all but the smallest n.
 *
 *   p = 4, root 0, halves x y     x: 0->2 1<-2->3     y: 0->3 2<-3->1
 *
 * Source: Sanders, Speck and Traeff, Parallel Comput. 35(12), 2009.
 */
#include "lib/algo/algo.h"
#include "lib/plan/double_tree.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT), from = out;

    plan_next_phase(plan); /* piece by piece, in both trees side by side */
    if (pb->rank == pb->root)
        from = coll__own_in(pb);
    for (int t = 0; t < 2; t++) {
        struct coll__rooted at = coll__double_tree_rooted(pb, t);
        struct coll__span half = coll__cut(pb, from, 2, t);

        if (at.up >= 0)
            plan_recv(plan, at.up, half);
        for (int i = 0; i < at.n_down; i++)
            plan_send(plan, at.down[i], half);
    }
    plan_copy(plan, out, from);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__double_tree_cost(pb, pb->nranks - 1, 1,
                                  (struct coll__tree_load){2, 0});
}

const struct coll__algo coll__algo_broadcast_double_tree = {
    .name = "double_tree",
    .what = "each half down a binary tree of its own",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
};
