/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical broadcast: on each level of the machine, from the outside, the
 * leader of each group gives the vector to the leaders of the groups in it.
 *
 * Only one message of n bytes enters a group.  The algorithm of each level is
 * the cheapest one for the problem there, and T is the sum over the levels.
 * The root leads its own groups, else the lowest rank does.
 *
 *   p = 5, hosts (0 1) (2 3 4), root 3     3->0; then 0->1, 2<-3->4
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000.
 */
#include "lib/algo/levels.h"

#include <stdlib.h>

/* One level: the vector from the leader of the group to its team; in: where the
 * root's own lies. */
static int spread_level(const struct coll__problem *pb,
                        struct coll__plan *plan, int level,
                        struct coll__span in)
{
    const struct coll__view *view = pb->view;
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__team team;
    struct coll__view flat;
    struct coll__problem inner;
    int rc = coll__team_of_leaders(view, level, pb->rank, pb->root, &team);

    if (rc)
        return rc;
    inner = coll__level_problem(pb, COLL_BROADCAST, level, team.n, 1, &flat);
    for (int i = 0; i < team.n; i++)
        if (coll__leads_below(view, level + 1, team.ranks[i], pb->root))
            inner.root = i;
    inner.rank = team.me;
    inner.count = pb->count;
    inner.in_place = inner.rank == inner.root && in.buf == BUF_OUT;
    rc = coll__plan_cheapest(plan, &inner, &inner,
                             &(struct coll__frame){team.ranks, in, out});
    free(team.ranks);
    return rc;
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT), in = out;
    int rc = COLL_OK;

    if (pb->rank == pb->root)
        in = coll__own_in(pb);
    for (int l = pb->view->n_levels - 1; l >= 0 && rc == COLL_OK; l--) {
        if (!coll__leads_below(pb->view, l, pb->rank, pb->root))
            continue;
        rc = spread_level(pb, plan, l, in);
        in = out;
    }
    return rc ? rc : plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double time = 0;

    for (int l = 0; l < pb->view->n_levels; l++) {
        int n = coll__level_fan(pb->view, l).most;
        struct coll__view flat;
        struct coll__problem inner =
            coll__level_problem(pb, COLL_BROADCAST, l, n, 1, &flat);

        inner.count = pb->count;
        time += coll__cheapest_cost(&inner);
    }
    return time;
}

const struct coll__algo coll__algo_broadcast_hierarchical = {
    .name = "hierarchical",
    .what = "level by level, from the leader of each group",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
    .refuses = coll__level_refuses,
};
