/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree barrier: all ranks report up a binomial tree, and the release
 * comes down it.
 *
 * T = 2 log2(p) alpha, twice that of dissemination, but with 2 (p - 1) messages
 * in all instead of p log2(p): best if ranks share cores.  The tree's order is the
 * ring's, so neighbours come first in any placement.  The
 * token is one byte, combined by max.
 *
 *   p = 5                0         up:   1->0 3->2, then 2->0, then 4->0
 *                      / | \       down: 0->4, then 0->2, then 0->1 2->3
 *                     1  2  4
 *                        |
 *                        3
 *
 * Source: Hensgen, Finkel and Manber, Int. J. Parallel Program. 17(1), 1988
 * (the tournament barrier, with fixed winners).
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_tree.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    const struct coll__view *view = pb->view;
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__span tmp = coll__whole(pb, BUF_TMP);
    int p = pb->nranks, v = coll__ring_place(view, pb->rank), bit = 1;

    plan_copy(plan, out, coll__own_in(pb));
    for (; bit < p && !(v & bit); bit *= 2)
        if (v + bit < p) {
            plan_recv(plan, coll__ring_at(view, p, v + bit), tmp);
            plan_reduce(plan, out, tmp);
        }
    if (v) {
        plan_send(plan, coll__ring_at(view, p, v - bit), out);
        plan_recv(plan, coll__ring_at(view, p, v - bit), out);
    }
    for (bit /= 2; bit; bit /= 2)
        if (v + bit < p)
            plan_send(plan, coll__ring_at(view, p, v + bit), out);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    int first = coll__ring_at(pb->view, pb->nranks, 0);
    struct coll__tree_shape shape = {
        .radix = 2, .root = first, .is_in_ring = 1};

    return 2 * coll__binomial_tree_cost(pb->view, &shape, TREE_DOWN, 1);
}

const struct coll__algo coll__algo_barrier_binomial = {
    .name = "binomial",
    .what = "report up a binomial tree, go on down it",
    .serves = COLL_FOR(BARRIER),
    .build = build,
    .cost = cost,
};
