/* SPDX-License-Identifier: BSD-3-Clause */
/* Double binary tree allreduce: half of the vector goes up one tree and down it
 * again, the other half in a second tree whose inner nodes are the first one's
 * leaves (double_tree.h).
 *
 * The pass `split` cuts each half into k pieces; with m = n / 2k bytes,
 * T = 2 log2(p) (alpha + gap + 2 m beta) + 2 log2(p) m gamma
 *     + (k-1) (4 (gap + m beta) + 2 m gamma):
 * near the ring's 2 n beta for large n, with log2(p) instead of p messages one
 * after the other.  Best for large p and all but the smallest n.
 *
 *   p = 3, halves x y      x: 0->1<-2, back 0<-1->2
 *                          y: 1->2<-0, back 1<-2->0
 *
 * Source: Sanders, Speck and Traeff, Parallel Comput. 35(12), 2009.
 */
#include "lib/algo/combine.h"
#include "lib/plan/double_tree.h"

static int rank_at(const struct coll__problem *pb, int node)
{
    return coll__ring_at(pb->view, pb->nranks, node);
}

/* Send half `which` up its tree: to the parent; at the top it is finished. */
static void climb(const struct coll__problem *pb, struct coll__plan *plan,
                  const struct coll__tree_node *node, int which)
{
    struct coll__span own = coll__cut(pb, coll__own_in(pb), 2, which);
    struct coll__span sum = coll__cut(pb, coll__whole(pb, BUF_OUT), 2, which);

    for (int i = 0; i < node->n_down; i++) {
        plan_absorb(plan, rank_at(pb, node->down[i]), sum, own,
                    coll__scratch(sum, sum.off));
        own = sum;
    }
    if (node->up >= 0) {
        plan_send(plan, rank_at(pb, node->up), own);
        return;
    }
    plan_copy(plan, sum, own); /* if there is one rank */
    plan_finish(pb, plan, sum);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int place = coll__ring_place(pb->view, pb->rank);
    struct coll__tree_node nodes[2];

    for (int t = 0; t < 2; t++) {
        nodes[t] = coll__double_tree(pb->nranks, t, place);
        climb(pb, plan, &nodes[t], t);
    }
    for (int t = 0; t < 2; t++) {
        struct coll__span half =
            coll__cut(pb, coll__whole(pb, BUF_OUT), 2, t);

        if (nodes[t].up >= 0)
            plan_recv(plan, rank_at(pb, nodes[t].up), half);
        for (int i = 0; i < nodes[t].n_down; i++)
            plan_send(plan, rank_at(pb, nodes[t].down[i]), half);
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__double_tree_cost(pb, pb->nranks, 2,
                                  (struct coll__tree_load){4, 2});
}

const struct coll__algo coll__algo_allreduce_double_tree = {
    .name = "double_tree",
    .what = "each half up and down a binary tree of its own",
    .serves = COLL_FOR(ALLREDUCE),
    .build = build,
    .cost = cost,
};
