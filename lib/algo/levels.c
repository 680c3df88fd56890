/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - teams of ranks on the levels of a machine, found by the heads of groups:
 * a head is the first member of its group. */
#include "lib/algo/levels.h"
#include "lib/util/util.h"

#include <math.h>
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

/* Return the number of groups of the level below in a group. */
static int count_heads(const struct coll__view *view, int l, int group)
{
    const struct coll__level *level = &view->levels[l];
    int n = 0;

    for (int i = level->first[group]; i < level->first[group + 1]; i++)
        n += is_head(view, l, level->members[i]);
    return n;
}

struct coll__fan coll__level_fan(const struct coll__view *view, int level)
{
    struct coll__fan fan = {view->nranks, 0};

    for (int g = 0; g < view->levels[level].n_groups; g++) {
        int n = count_heads(view, level, g);

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

/* ---- the time of rooted levels ------------------------------------------- */

/* Return the time of one level, for a group of `fan` groups of the level below. */
static double level_cost(const struct coll__problem *pb, int level, int fan)
{
    struct coll__problem inner;
    struct coll__view flat;

    coll__level_view(&flat, pb->view, level, fan);
    inner = coll__level_problem(pb, pb->collective, &flat);
    inner.count = pb->count;
    return coll__cheapest_cost(&inner, NULL);
}

/* Return how long a leader's long message on a level keeps it from its messages on the
 * level below. */
static double lead_cost(const struct coll__problem *pb, int level)
{
    double n = (double)coll__problem_bytes(pb);
    struct coll__view flat;

    coll__level_view(&flat, pb->view, level, 2);
    return n > COLL__EAGER ? coll__cost_next(&flat, n) : 0;
}

/* Add the time of a level to time[r] of each rank.  The leader of a group has the vector
 * already, and so has everyone whom it leads on the level below. */
static void add_level(const struct coll__problem *pb, int l, double *time)
{
    const struct coll__level *level = &pb->view->levels[l];
    double far = 0, near = lead_cost(pb, l);
    int known = 0; /* the fan that takes `far` */

    for (int g = 0; g < level->n_groups; g++) {
        int leader = level->members[level->first[g]];
        int fan = count_heads(pb->view, l, g);

        if (level->group[pb->root] == g)
            leader = pb->root;
        if (fan < 2)
            continue;
        if (fan != known)
            far = level_cost(pb, l, fan);
        known = fan;
        for (int i = level->first[g]; i < level->first[g + 1]; i++) {
            int rank = level->members[i];

            time[rank] += is_below_with(pb->view, l, rank, leader) ? near : far;
        }
    }
}

double coll__rooted_levels_cost(const struct coll__problem *pb)
{
    double *times, time = 0;

    if (pb->view->is_even) {
        for (int l = 0; l < pb->view->n_levels; l++)
            time += level_cost(pb, l, coll__level_fan(pb->view, l).most);
        return time;
    }
    times = calloc((size_t)pb->nranks, sizeof(*times));
    if (!times)
        return HUGE_VAL;
    for (int l = 0; l < pb->view->n_levels; l++)
        add_level(pb, l, times);
    for (int r = 0; r < pb->nranks; r++)
        time = max_double(time, times[r]);
    free(times);
    return time;
}

const char *coll__needs_groups(const struct coll__problem *pb)
{
    return pb->view && pb->view->n_levels > 1
               ? NULL
               : "needs ranks in groups, such as hosts";
}
