/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical reduce: on each level of the machine, from the inside, each
 * group reduces to its leader, and the leaders go on.
 *
 * Only one message of n bytes leaves a group.  The algorithm of each level is
 * the cheapest one for the problem there, and T is the sum over the levels.
 * The root leads its own groups, else the lowest rank does.
 *
 *   p = 5, hosts (0 1) (2 3 4), root 3     1->0, 2->3<-4; then 0->3
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000.
 */
#include "lib/algo/levels.h"

#include <stdlib.h>

/* One level: the team's vectors to the leader of its group, who finds its sum
 * in `sum`; own: where this rank's lies. */
static int reduce_level(const struct coll__problem *pb,
                        struct coll__plan *plan, int level,
                        struct coll__span own, struct coll__span sum)
{
    const struct coll__view *view = pb->view;
    struct coll__team team;
    struct coll__view flat;
    struct coll__problem inner;
    int rc = coll__team_of_leaders(view, level, pb->rank, pb->root, &team);

    if (rc)
        return rc;
    inner = coll__level_problem(pb, COLL_REDUCE, level, team.n, 1, &flat);
    for (int i = 0; i < team.n; i++)
        if (coll__leads_below(view, level + 1, team.ranks[i], pb->root))
            inner.root = i;
    inner.rank = team.me;
    inner.count = pb->count;
    inner.in_place = inner.rank == inner.root && own.buf == sum.buf;
    rc = coll__plan_cheapest(
        plan, &inner, &inner, &(struct coll__frame){team.ranks, own, sum});
    free(team.ranks);
    return rc;
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int is_root = pb->rank == pb->root, rc = COLL_OK;
    struct coll__span own = coll__own_in(pb);
    struct coll__span sum = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);

    if (!is_root)
        plan->tmp_len = sum.len; /* for the scratch to lie behind it */
    for (int l = 0; l < pb->view->n_levels && rc == COLL_OK; l++) {
        if (!coll__leads_below(pb->view, l, pb->rank, pb->root))
            break;
        rc = reduce_level(pb, plan, l, own, sum);
        own = sum;
    }
    if (is_root)
        plan_finish(pb, plan, sum);
    return rc ? rc : plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double time = 0;

    for (int l = 0; l < pb->view->n_levels; l++) {
        int n = coll__level_fan(pb->view, l).most;
        struct coll__view flat;
        struct coll__problem inner =
            coll__level_problem(pb, COLL_REDUCE, l, n, 1, &flat);

        inner.count = pb->count;
        time += coll__cheapest_cost(&inner);
    }
    return time;
}

const struct coll__algo coll__algo_reduce_hierarchical = {
    .name = "hierarchical",
    .what = "level by level, to the leader of each group",
    .serves = COLL_FOR(REDUCE),
    .build = build,
    .cost = cost,
    .refuses = coll__level_refuses,
};
