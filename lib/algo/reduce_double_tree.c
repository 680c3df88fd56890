/* SPDX-License-Identifier: BSD-3-Clause */
/* Double binary tree reduce: half of the vector goes up one tree, the other
 * half up a second one whose inner nodes are the first one's leaves
 * (double_tree.h).  The trees span all ranks but the root, which is above both.
 *
 * The pass `split` cuts each half into k pieces; with m = n / 2k bytes,
 * T = log2(p) (alpha + gap + 2 m (beta + gamma))
 *     + (k-1) (2 (gap + m beta) + 2 m gamma):
 * near the chain's n (beta + gamma) for large n, with log2(p) instead of p
 * messages one after the other.  Best for large p and all but the smallest n.
 *
 *   p = 4, root 0, halves x y     x: 1->2<-3 2->0     y: 2->3<-1 3->0
 *
 * Source: Sanders, Speck and Traeff, Parallel Comput. 35(12), 2009.
 */
#include "lib/algo/combine.h"
#include "lib/plan/double_tree.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int is_root = pb->rank == pb->root;
    struct coll__span whole = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);
    size_t free = is_root ? 0 : whole.len;

    for (int t = 0; t < 2; t++) {
        struct coll__rooted at = coll__double_tree_rooted(pb, t);
        struct coll__span own = coll__cut(pb, coll__own_in(pb), 2, t);
        struct coll__span sum = coll__cut(pb, whole, 2, t);

        for (int i = 0; i < at.n_down; i++) {
            plan_absorb(plan, at.down[i], sum, own,
                        coll__scratch(sum, free + sum.off));
            own = sum;
        }
        if (!is_root) {
            plan_send(plan, at.up, own);
            continue;
        }
        plan_copy(plan, sum, own); /* if there is one rank */
        plan_finish(pb, plan, sum);
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__double_tree_cost(pb, pb->nranks - 1, 1,
                                  (struct coll__tree_load){2, 2});
}

const struct coll__algo coll__algo_reduce_double_tree = {
    .name = "double_tree",
    .what = "each half up a binary tree of its own",
    .serves = COLL_FOR(REDUCE),
    .build = build,
    .cost = cost,
};
