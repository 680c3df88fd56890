/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical broadcast: on each level of the machine, from the outside, the
 * leader of each group sends the vector to the leaders of the groups in it.
 *
 * Only one message of n bytes enters a group.  Each level uses the cheapest
 * algorithm for its problem, and T is the sum over the levels.  The root leads its
 * own groups; the lowest rank leads any other group.
 *
 *   p = 5, hosts (0 1) (2 3 4), root 3     3->0; then 0->1, 2<-3->4
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000.
 */
#include "lib/algo/levels.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT), in = out;
    int rc = COLL_OK;

    if (pb->rank == pb->root)
        in = coll__own_in(pb);
    for (int l = pb->view->n_levels - 1; l >= 0 && rc == COLL_OK; l--) {
        if (!coll__leads(pb->view, l, pb->rank, pb->root))
            continue;
        rc = coll__plan_rooted_level(plan, pb, l, in, out);
        in = out;
    }
    return rc ? rc : plan_status(plan);
}

/* Return the time that messages between leaders wait for the long messages that the
 * leaders have begun to send inside: half of the vector. */
static double waiting(const struct coll__problem *pb, int level)
{
    double n = (double)coll__problem_bytes(pb);
    struct coll__view inside;

    if (coll__level_fan(pb->view, level + 1).most < 3 || n <= COLL__EAGER)
        return 0;
    coll__level_view(&inside, pb->view, level,
                     coll__level_fan(pb->view, level).most);
    return coll__cost_next(&inside, n / 2);
}

static double cost(const struct coll__problem *pb)
{
    double time = coll__rooted_levels_cost(pb);

    for (int l = 0; l < pb->view->n_levels - 1; l++)
        time += waiting(pb, l);
    return time;
}

const struct coll__algo coll__algo_broadcast_hierarchical = {
    .name = "hierarchical",
    .what = "level by level, from the leader of each group",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
    .refuses = coll__needs_groups,
};
