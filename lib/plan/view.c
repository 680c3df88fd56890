/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - groups of ranks within groups, and the ring through them. */
#include "lib/plan/view.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- one level ----------------------------------------------------------- */

struct colored {
    int color, rank;
};

static int by_color(const void *a, const void *b)
{
    const struct colored *x = a, *y = b;

    if (x->color != y->color)
        return x->color < y->color ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Number the groups in order of their lowest rank, into group[rank].  Returns the
 * number of groups, or -1 without memory. */
static int number_groups(const int *color, int n, int *group)
{
    struct colored *sorted = malloc((size_t)n * sizeof(*sorted));
    int *first = malloc((size_t)n * sizeof(*first)), n_groups = 0;

    for (int r = 0; r < n && sorted && first; r++)
        sorted[r] = (struct colored){color[r], r};
    if (sorted && first) {
        qsort(sorted, (size_t)n, sizeof(*sorted), by_color);
        for (int i = 0, low = 0; i < n; i++) {
            if (i && sorted[i].color != sorted[i - 1].color)
                low = i;
            first[sorted[i].rank] = sorted[low].rank;
        }
        for (int r = 0; r < n; r++)
            group[r] = first[r] == r ? n_groups++ : group[first[r]];
    } else {
        n_groups = -1;
    }
    free(sorted);
    free(first);
    return n_groups;
}

/* Fill in first, members and index from group[]. */
static void list_members(struct coll__level *level, int n, int *first,
                         int *members, int *index)
{
    for (int r = 0; r < n; r++)
        first[level->group[r] + 1]++;
    level->size_min = n;
    for (int g = 0; g < level->n_groups; g++) {
        int size = first[g + 1];

        level->size_min = size < level->size_min ? size : level->size_min;
        level->size_max = size > level->size_max ? size : level->size_max;
        first[g + 1] += first[g];
    }
    for (int r = 0; r < n; r++) /* this moves each first[g] to the end of its group */
        members[first[level->group[r]]++] = r;
    for (int g = level->n_groups; g > 0; g--)
        first[g] = first[g - 1];
    first[0] = 0;
    for (int g = 0; g < level->n_groups; g++)
        for (int i = first[g]; i < first[g + 1]; i++)
            index[members[i]] = i - first[g];
}

static int level_init(struct coll__level *level, int n, const int *color)
{
    size_t len = (size_t)n;
    int *group = calloc(len, sizeof(int)), *first = NULL;
    int *members = malloc(len * sizeof(int)), *index = malloc(len * sizeof(int));

    level->group = group;
    level->members = members;
    level->index = index;
    if (!group || !members || !index)
        return COLL_ERR_NOMEM;
    level->n_groups = color ? number_groups(color, n, group) : 1;
    if (level->n_groups > 0)
        first = calloc((size_t)level->n_groups + 1, sizeof(int));
    level->first = first;
    if (!first)
        return COLL_ERR_NOMEM;
    list_members(level, n, first, members, index);
    return COLL_OK;
}

int coll__view_is_level(const int *color, const int *below, int size)
{
    int pairs = 0, n_groups = 0;

    for (int r = 0; r < size; r++) {
        pairs |= color[r] != r;
        n_groups += color[r] == r;
    }
    if (!pairs || n_groups == 1)
        return 0;
    return !below || memcmp(color, below, (size_t)size * sizeof(*color));
}

/* ---- the ring ------------------------------------------------------------ */

struct placed {
    int group[COLL__LEVELS], n_levels, rank;
};

static int by_groups(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    for (int l = x->n_levels - 1; l >= 0; l--)
        if (x->group[l] != y->group[l])
            return x->group[l] < y->group[l] ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Walk the ring group after group, outermost first: it enters and leaves each group
 * once. */
static int make_ring(struct coll__view *view)
{
    size_t n = (size_t)view->nranks;
    struct placed *sorted = malloc(n * sizeof(*sorted));
    int *ring = malloc(n * sizeof(int)), *place = malloc(n * sizeof(int));

    view->ring = ring;
    view->place = place;
    if (!sorted || !ring || !place) {
        free(sorted);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < view->nranks; r++) {
        sorted[r] = (struct placed){.n_levels = view->n_levels, .rank = r};
        for (int l = 0; l < view->n_levels; l++)
            sorted[r].group[l] = view->levels[l].group[r];
    }
    qsort(sorted, n, sizeof(*sorted), by_groups);
    view->is_contiguous = 1;
    for (int i = 0; i < view->nranks; i++) {
        ring[i] = sorted[i].rank;
        place[sorted[i].rank] = i;
        view->is_contiguous &= sorted[i].rank == i;
    }
    free(sorted);
    return COLL_OK;
}

/* Set place[order[i]] = i; returns -1 if order lacks a rank. */
static int invert(const int *order, int n, int *place)
{
    for (int r = 0; r < n; r++)
        place[r] = -1;
    for (int i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || place[order[i]] >= 0)
            return -1;
        place[order[i]] = i;
    }
    return 0;
}

int coll__view_set_ring(struct coll__view *view, const int *order)
{
    size_t len = (size_t)view->nranks * sizeof(int);
    int *ring = malloc(len), *place = malloc(len), rc = COLL_ERR_NOMEM;

    if (!ring || !place) {
        log_error("plan", "no memory for a ring of %d ranks", view->nranks);
        goto fail;
    }
    if (invert(order, view->nranks, place)) {
        log_error("plan", "a ring of %d ranks does not hold each of them once",
                  view->nranks);
        rc = COLL_ERR_INVALID;
        goto fail;
    }
    memcpy(ring, order, len);
    free((void *)view->ring);
    free((void *)view->place);
    view->ring = ring;
    view->place = place;
    return COLL_OK;

fail:
    free(ring);
    free(place);
    return rc;
}

/* ---- who leaves a group --------------------------------------------------- */

/* Return the lowest level that has both ranks in one group. */
static int joined_at(const struct coll__view *view, int a, int b)
{
    int l = 0;

    while (view->levels[l].group[a] != view->levels[l].group[b])
        l++;
    return l;
}

/* Count one more message that leaves the rank's group below level l.  counts[l] holds
 * one number for each such group. */
static void count_one(struct coll__view *view, int *const counts[], int l,
                      int rank, int *most)
{
    int n = ++counts[l][l ? view->levels[l - 1].group[rank] : rank];

    *most = n > *most ? n : *most;
}

static void count_distance(struct coll__view *view, int *const counts[], int k)
{
    int distance = 1 << k;
    size_t len = (size_t)view->nranks * sizeof(int);

    for (int is_tree = 0; is_tree < 2; is_tree++) {
        for (int l = 0; l < view->n_levels; l++)
            memset(counts[l], 0, len);
        for (int r = 0; r < view->nranks; r++) {
            int peer = r ^ distance, l;

            if (peer >= view->nranks || (is_tree && r % (2 * distance)))
                continue;
            l = joined_at(view, r, peer);
            count_one(view, counts, l, r,
                      is_tree ? &view->levels[l].sent[k]
                              : &view->levels[l].exchanged[k]);
        }
    }
}

/* Groups whose sizes are equal and powers of two need no counts. */
static int is_even(const struct coll__view *view)
{
    for (int l = 0; l < view->n_levels - 1; l++) {
        int size = view->levels[l].size_max;

        if (size != view->levels[l].size_min || (size & (size - 1)))
            return 0;
    }
    return view->is_contiguous;
}

static int count_leaving(struct coll__view *view)
{
    size_t len = (size_t)view->nranks;
    int *all = NULL, *counts[COLL__LEVELS];

    view->is_even = is_even(view);
    if (view->is_even)
        return COLL_OK;
    all = malloc((size_t)view->n_levels * len * sizeof(*all));
    if (!all)
        return COLL_ERR_NOMEM;
    for (int l = 0; l < view->n_levels; l++)
        counts[l] = all + (size_t)l * len;
    for (int k = 0; k < COLL__DISTANCES && 1 << k < view->nranks; k++)
        count_distance(view, counts, k);
    free(all);
    return COLL_OK;
}

/* ---- the whole ----------------------------------------------------------- */

int coll__view_init(struct coll__view *view, int nranks, int n_levels,
                    const int *const color[])
{
    int rc = COLL_OK;

    *view = (struct coll__view){.nranks = nranks, .n_levels = n_levels};
    for (int l = 0; l < n_levels && rc == COLL_OK; l++)
        rc = level_init(&view->levels[l], nranks,
                        l < n_levels - 1 ? color[l] : NULL);
    if (rc == COLL_OK)
        rc = make_ring(view);
    if (rc == COLL_OK)
        rc = count_leaving(view);
    if (rc) {
        log_error("plan", "no memory for a view of %d ranks", nranks);
        coll__view_fini(view);
    }
    return rc;
}

void coll__view_flat(struct coll__view *view, int nranks,
                     const struct coll__level *prices, double gamma,
                     size_t chunk)
{
    *view = (struct coll__view){.nranks = nranks,
                                .n_levels = 1,
                                .is_contiguous = 1,
                                .is_even = 1,
                                .gamma = gamma,
                                .chunk = chunk};
    view->levels[0] = *prices;
    view->levels[0].n_groups = 1;
    view->levels[0].size_min = view->levels[0].size_max = nranks;
    view->levels[0].first = view->levels[0].members = NULL;
    view->levels[0].group = view->levels[0].index = NULL;
}

void coll__view_fini(struct coll__view *view)
{
    for (int l = 0; l < view->n_levels; l++) {
        free((void *)view->levels[l].first);
        free((void *)view->levels[l].members);
        free((void *)view->levels[l].group);
        free((void *)view->levels[l].index);
    }
    free((void *)view->ring);
    free((void *)view->place);
    *view = (struct coll__view){0};
}
