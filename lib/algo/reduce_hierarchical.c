/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical reduce: on each level of the machine, from the inside, each group
 * reduces to its leader, and the leaders are the ranks of the next level.
 *
 * Only one message of n bytes leaves a group.  Each level uses the cheapest
 * algorithm for its problem, and T is the sum over the levels.  The root leads its
 * own groups; the lowest rank leads any other group.
 *
 *   p = 5, hosts (0 1) (2 3 4), root 3     1->0, 2->3<-4; then 0->3
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000.
 */
#include "lib/algo/levels.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int is_root = pb->rank == pb->root, rc = COLL_OK;
    struct coll__span own = coll__own_in(pb);
    struct coll__span sum = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);

    if (!is_root)
        plan->tmp_len = sum.len; /* scratch must begin after it */
    for (int l = 0; l < pb->view->n_levels && rc == COLL_OK; l++) {
        if (!coll__leads(pb->view, l, pb->rank, pb->root))
            break;
        rc = coll__plan_rooted_level(plan, pb, l, own, sum);
        own = sum;
    }
    if (is_root)
        plan_finish(pb, plan, sum);
    return rc ? rc : plan_status(plan);
}

const struct coll__algo coll__algo_reduce_hierarchical = {
    .name = "hierarchical",
    .what = "level by level, to the leader of each group",
    .serves = COLL_FOR(REDUCE),
    .build = build,
    .cost = coll__rooted_levels_cost,
    .refuses = coll__needs_groups,
};
