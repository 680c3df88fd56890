/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - teams of ranks on the levels of a machine, found by the heads of groups:
 * a head is the first member of its group. */
#include "lib/algo/levels.h"

#include <stdlib.h>

/* ---- groups of the level below ------------------------------------------- */

/* Is this rank the head of its group of the level below? */
static int is_head(const struct coll__view *view, int level, int rank)
{
    return !level || view->levels[level - 1].index[rank] == 0;
}

/* Return the i-th head within a rank's group of a level. */
static int head_at(const struct coll__view *view, int level, int rank, int i)
{
    int n;
    const int *member = coll__view_group(view, level, rank, &n);

    while (!is_head(view, level, *member) || i--)
        member++;
    return *member;
}

/* Return the index of a rank's group of the level below, within the rank's group of
 * this level. */
static int index_of(const struct coll__view *view, int level, int rank)
{
    int n, i = 0, head = rank;
    const int *member = coll__view_group(view, level, rank, &n);

    if (level)
        head = *coll__view_group(view, level - 1, rank, &n);
    for (; *member != head; member++)
        i += is_head(view, level, *member);
    return i;
}

struct coll__fan coll__level_fan(const struct coll__view *view, int level)
{
    const struct coll__level *l = &view->levels[level];
    struct coll__fan fan = {view->nranks, 0};

    for (int g = 0; g < l->n_groups; g++) {
        int n = 0;

        for (int i = l->first[g]; i < l->first[g + 1]; i++)
            n += is_head(view, level, l->members[i]);
        fan.least = n < fan.least ? n : fan.least;
        fan.most = n > fan.most ? n : fan.most;
    }
    return fan;
}

/* ---- teams --------------------------------------------------------------- */

/* Make a team of the heads in this rank's group. */
static int team_of_heads(struct coll__team *team, struct coll__plan *plan,
                         const struct coll__problem *pb, int level)
{
    int n;
    const int *members = coll__view_group(pb->view, level, pb->rank, &n);

    *team = (struct coll__team){0};
    team->ranks = coll__plan_alloc(plan, n, sizeof(*team->ranks));
    for (int i = 0; i < n && team->ranks; i++)
        if (is_head(pb->view, level, members[i]))
            team->ranks[team->n++] = members[i];
    return plan_status(plan);
}

/* Are two ranks in one group of the level below? */
static int is_below_with(const struct coll__view *view, int level, int rank,
                         int other)
{
    const int *group = level ? view->levels[level - 1].group : NULL;

    return group ? group[rank] == group[other] : rank == other;
}

int coll__leads(const struct coll__view *view, int level, int rank, int root)
{
    if (root != COLL__NO_ROOT && is_below_with(view, level, rank, root))
        return rank == root;
    return is_head(view, level, rank);
}

int coll__team_of_leaders(struct coll__team *team, struct coll__plan *plan,
                          const struct coll__problem *pb, int level, int root)
{
    if (team_of_heads(team, plan, pb, level))
        return plan_status(plan);
    for (int i = 0; i < team->n; i++) {
        int *rank = &team->ranks[i];

        if (root != COLL__NO_ROOT &&
            is_below_with(pb->view, level, *rank, root)) {
            *rank = root;
            team->leader = i;
        }
        if (*rank == pb->rank)
            team->me = i;
    }
    return COLL_OK;
}

int coll__team_of_index(struct coll__team *team, struct coll__plan *plan,
                        const struct coll__problem *pb, int level)
{
    int index[COLL__LEVELS];

    if (team_of_heads(team, plan, pb, level))
        return plan_status(plan);
    for (int l = 0; l < level; l++)
        index[l] = index_of(pb->view, l, pb->rank);
    for (int i = 0; i < team->n; i++) {
        for (int l = level - 1; l >= 0; l--)
            team->ranks[i] = head_at(pb->view, l, team->ranks[i], index[l]);
        if (team->ranks[i] == pb->rank)
            team->me = i;
    }
    return COLL_OK;
}

void coll__team_fini(struct coll__team *team)
{
    free(team->ranks);
    *team = (struct coll__team){0};
}

/* ---- problems of a team -------------------------------------------------- */

void coll__level_view(struct coll__view *flat, const struct coll__view *view,
                      int level, int n)
{
    coll__view_flat(flat, n, &view->levels[level], view->gamma, view->chunk);
}

void coll__level_view_of_flows(struct coll__view *flat,
                               const struct coll__view *view, int level, int n,
                               double flows)
{
    coll__level_view(flat, view, level, n);
    flat->levels[0].share *= flows;
}

struct coll__problem coll__level_problem(const struct coll__problem *pb,
                                         enum coll_collective collective,
                                         const struct coll__view *flat)
{
    return (struct coll__problem){.collective = collective,
                                  .type = pb->type,
                                  .op = pb->op == COLL_AVG ? COLL_SUM : pb->op,
                                  .is_user_op = pb->is_user_op,
                                  .nranks = flat->nranks,
                                  .view = flat};
}

static const struct coll__algo *cheapest(const struct coll__problem *priced,
                                         const char *const among[],
                                         double *seconds)
{
    const struct coll__algo *best = NULL;

    if (!among)
        return coll__algo_cheapest(priced, seconds);
    for (int i = 0; among[i]; i++) {
        const struct coll__algo *algo =
            coll__algo_find(priced->collective, among[i]);
        double time = algo->cost(priced);

        if (best && time >= *seconds)
            continue;
        best = algo;
        *seconds = time;
    }
    return best;
}

int coll__plan_cheapest(struct coll__plan *plan,
                        const struct coll__problem *inner,
                        const struct coll__problem *priced,
                        const char *const among[],
                        const struct coll__frame *frame)
{
    double seconds;

    return coll__plan_nest(plan, cheapest(priced, among, &seconds), inner,
                           frame);
}

double coll__cheapest_cost(const struct coll__problem *priced,
                           const char *const among[])
{
    double seconds;

    cheapest(priced, among, &seconds);
    return seconds;
}

int coll__plan_rooted_level(struct coll__plan *plan,
                            const struct coll__problem *pb, int level,
                            struct coll__span own, struct coll__span out)
{
    struct coll__team team;
    struct coll__frame frame;
    struct coll__problem inner;
    struct coll__view flat;

    if (coll__team_of_leaders(&team, plan, pb, level, pb->root))
        return plan_status(plan);
    frame = (struct coll__frame){team.ranks, own, out};
    coll__level_view(&flat, pb->view, level, team.n);
    inner = coll__level_problem(pb, pb->collective, &flat);
    inner.root = team.leader;
    inner.rank = team.me;
    inner.count = pb->count;
    inner.in_place = inner.rank == inner.root && own.buf == out.buf;
    coll__plan_cheapest(plan, &inner, &inner, NULL, &frame);
    coll__team_fini(&team);
    return plan_status(plan);
}

double coll__rooted_levels_cost(const struct coll__problem *pb)
{
    double time = 0;

    for (int l = 0; l < pb->view->n_levels; l++) {
        int n = coll__level_fan(pb->view, l).most;
        struct coll__problem inner;
        struct coll__view flat;

        coll__level_view(&flat, pb->view, l, n);
        inner = coll__level_problem(pb, pb->collective, &flat);
        inner.count = pb->count;
        time += coll__cheapest_cost(&inner, NULL);
    }
    return time;
}

const char *coll__needs_groups(const struct coll__problem *pb)
{
    return pb->view && pb->view->n_levels > 1
               ? NULL
               : "needs ranks in groups, such as hosts";
}
