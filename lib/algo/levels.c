/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - teams of ranks on the levels of a machine: walks along the ring,
 * from group to group. */
#include "lib/algo/levels.h"
#include "lib/plan/select.h"
#include "lib/trace/log.h"

#include <stdlib.h>

/* Ranks in the group of a level that the rank at a place of the ring is in. */
static int size_at(const struct coll__view *view, int level, int place)
{
    const struct coll__level *l = &view->levels[level];
    int group = l->group[view->ring[place]];

    return l->first[group + 1] - l->first[group];
}

/* From a place where a group of `level` begins to where its i-th group of the
 * level below does. */
static int skip(const struct coll__view *view, int level, int place, int i)
{
    if (!level)
        return place + i;
    while (i--)
        place += size_at(view, level - 1, place);
    return place;
}

/* Where a rank's group begins in the ring. */
static int head_place(const struct coll__view *view, int level, int rank)
{
    int group = view->levels[level].group[rank];

    return view->place[coll__group_head(view, level, group)];
}

struct coll__fan coll__level_fan(const struct coll__view *view, int level)
{
    const struct coll__level *l = &view->levels[level];
    struct coll__fan fan = {l->size_min, l->size_max};
    int place = 0;

    if (!level)
        return fan;
    fan.least = view->nranks;
    fan.most = 0;
    while (place < view->nranks) {
        int end = place + size_at(view, level, place), n = 0;

        for (; place < end; n++)
            place = skip(view, level, place, 1);
        fan.least = n < fan.least ? n : fan.least;
        fan.most = n > fan.most ? n : fan.most;
    }
    return fan;
}

/* The index of a rank's group of the level below within its group. */
static int index_of(const struct coll__view *view, int level, int rank)
{
    int place = head_place(view, level, rank), n = 0, mine;

    if (!level)
        return view->levels[0].index[rank];
    mine = head_place(view, level - 1, rank);
    for (; place < mine; n++)
        place = skip(view, level, place, 1);
    return n;
}

/* Make room for the team of a rank on a level: *begin to *end is its group. */
static int make_room(const struct coll__view *view, int level, int rank,
                     int *begin, int *end, struct coll__team *team)
{
    *begin = head_place(view, level, rank);
    *end = *begin + size_at(view, level, *begin);
    *team = (struct coll__team){0};
    for (int place = *begin; place < *end; team->n++)
        place = skip(view, level, place, 1);
    team->ranks = malloc((size_t)team->n * sizeof(int));
    if (team->ranks)
        return COLL_OK;
    log_error("plan", "no memory for a team of %d ranks", team->n);
    return COLL_ERR_NOMEM;
}

int coll__team_of_index(const struct coll__view *view, int level, int rank,
                        struct coll__team *team)
{
    int index[COLL__LEVELS], place, end, n = 0;

    if (make_room(view, level, rank, &place, &end, team))
        return COLL_ERR_NOMEM;
    for (int l = 0; l < level; l++)
        index[l] = index_of(view, l, rank);
    for (; place < end; place = skip(view, level, place, 1)) {
        int at = place;

        for (int l = level - 1; l >= 0; l--)
            at = skip(view, l, at, index[l]);
        if (view->ring[at] == rank)
            team->me = n;
        team->ranks[n++] = view->ring[at];
    }
    return COLL_OK;
}

int coll__leads_below(const struct coll__view *view, int level, int rank,
                      int root)
{
    int group, of_root;

    if (!level || rank == root)
        return 1;
    group = view->levels[level - 1].group[rank];
    of_root = view->levels[level - 1].group[root];
    return group != of_root &&
           coll__group_head(view, level - 1, group) == rank;
}

int coll__team_of_leaders(const struct coll__view *view, int level, int rank,
                          int root, struct coll__team *team)
{
    int place, end, n = 0;

    if (make_room(view, level, rank, &place, &end, team))
        return COLL_ERR_NOMEM;
    for (; place < end; place = skip(view, level, place, 1)) {
        int leader = view->ring[place];

        if (level && view->levels[level - 1].group[leader] ==
                         view->levels[level - 1].group[root])
            leader = root;
        if (leader == rank)
            team->me = n;
        team->ranks[n++] = leader;
    }
    return COLL_OK;
}

struct coll__problem coll__level_problem(const struct coll__problem *pb,
                                         enum coll_collective collective,
                                         int level, int n, double flows,
                                         struct coll__view *flat)
{
    struct coll__problem inner = {.collective = collective,
                                  .type = pb->type,
                                  .op = pb->op == COLL_AVG ? COLL_SUM : pb->op,
                                  .is_user_op = pb->is_user_op,
                                  .nranks = n,
                                  .view = flat};
    struct coll__level prices = pb->view->levels[level];

    prices.share *= flows;
    coll__view_flat(flat, n, &prices, pb->view->gamma, pb->view->chunk);
    return inner;
}

int coll__plan_cheapest(struct coll__plan *plan,
                        const struct coll__problem *inner,
                        const struct coll__problem *priced,
                        const struct coll__frame *frame)
{
    double seconds;

    return coll__plan_nest(plan, coll__algo_select(priced, "", &seconds), inner,
                           frame);
}

double coll__cheapest_cost(const struct coll__problem *inner)
{
    double seconds;

    coll__algo_select(inner, "", &seconds);
    return seconds;
}

const char *coll__level_refuses(const struct coll__problem *pb)
{
    return pb->view && pb->view->n_levels > 1 && pb->view->ring
               ? NULL
               : "needs a machine of two levels";
}
