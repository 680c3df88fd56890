/* SPDX-License-Identifier: BSD-3-Clause */
/* leaders.c - who acts for the groups of a level, and which algorithm is the
 * cheapest among them. */
#include "lib/algo/algo.h"

#include <stdlib.h>

int coll__leads(const struct coll__view *view, int level, int rank)
{
    return level == 0 || view->levels[level - 1].index[rank] == 0;
}

int coll__leaders_init(struct coll__leaders *leaders,
                       const struct coll__view *view, int level, int rank,
                       struct coll__plan *plan)
{
    int n;
    const int *members = coll__view_group(view, level, rank, &n);

    *leaders = (struct coll__leaders){.me = -1};
    leaders->ranks = coll__plan_alloc(plan, n, sizeof(*leaders->ranks));
    for (int i = 0; i < n && leaders->ranks; i++) {
        if (!coll__leads(view, level, members[i]))
            continue;
        if (members[i] == rank)
            leaders->me = leaders->n;
        leaders->ranks[leaders->n++] = members[i];
    }
    return plan_status(plan);
}

void coll__leaders_fini(struct coll__leaders *leaders)
{
    free(leaders->ranks);
    *leaders = (struct coll__leaders){0};
}

int coll__leaders_max(const struct coll__view *view, int level)
{
    int below = level ? view->levels[level - 1].size_max : 1;

    return (view->levels[level].size_max + below - 1) / below;
}

void coll__view_inner(struct coll__view *inner, const struct coll__view *view,
                      int level, int n)
{
    coll__view_flat(inner, n, &view->levels[level], view->gamma, view->chunk);
}

const struct coll__algo *coll__algo_pick(const struct coll__problem *inner,
                                         const char *const names[],
                                         double *seconds)
{
    const struct coll__algo *best = NULL;

    for (int i = 0; names[i]; i++) {
        const struct coll__algo *algo =
            coll__algo_find(inner->collective, names[i]);
        double time = algo->cost(inner);

        if (best && time >= *seconds)
            continue;
        best = algo;
        *seconds = time;
    }
    return best;
}
