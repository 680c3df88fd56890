/* SPDX-License-Identifier: BSD-3-Clause */
/* view_tree.c - the time of a tree, message by message.
 *
 * A message from rank a to rank b begins when a has what it sends, when the sending
 * side of a and the receiving side of b are free, and when the links of their groups
 * are free.  A long vector that is reduced also waits until b has added the one before.
 * A side is busy for max(gap, n beta), a group's links for n share.
 *
 * Vectors that are cut into pieces take the time of the first piece on its way, and
 * then the busiest part of the machine decides: each of the other pieces takes as long
 * as this part needs for a piece.
 */
#include "lib/plan/view_tree.h"
#include "lib/plan/fold.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <math.h>
#include <stdlib.h>

/* A message between two ranks. */
struct edge {
    int up, down;
    double n; /* bytes */
};

/* Something that does one thing after the other: a rank's sending or receiving side, its
 * processor, or the links into or out of a group. */
struct lane {
    double free; /* since when, s */
    double load; /* how long it is busy in all, s */
};

/* The lanes of a rank. */
enum { SENDS, RECEIVES, WORKS, N_SIDES };

struct walk {
    const struct coll__view *view;
    int is_up, is_reduced;
    double *time;                     /* [nranks]: when a rank has its vector */
    struct lane *sides;               /* [N_SIDES * nranks] */
    struct lane *links[COLL__LEVELS]; /* [2 * groups of the level below] */
    int n_lanes;                      /* links follow the sides */
};

/* ---- the tree ------------------------------------------------------------ */

static int rank_of(const struct coll__view *view,
                   const struct coll__tree_shape *shape,
                   const struct coll__fold *fold, int node)
{
    int p = view->nranks;

    if (shape->is_folded)
        node = coll__fold_rank(fold, node);
    if (shape->is_in_ring)
        return coll__ring_at(view, p,
                             coll__ring_place(view, shape->root) + node);
    return (shape->root + node) % p;
}

/* List the messages from the root on, each rank's in the order of its sends.  Returns
 * their number, nranks - 1. */
static int list_edges(const struct coll__view *view,
                      const struct coll__tree_shape *shape,
                      enum coll__tree_way way, double n, struct edge *edges)
{
    struct coll__fold fold = coll__fold_of(view->nranks, 0);
    int p = view->nranks, m = shape->is_folded ? fold.m : p;
    int k = 0, far = 1, has_blocks = way == TREE_SCATTER || way == TREE_GATHER;

    while (far < m)
        far *= shape->radix;
    for (int d = far / shape->radix; d; d /= shape->radix)
        for (int node = 0; node < m; node += d * shape->radix)
            for (int i = shape->radix - 1; i > 0; i--) {
                int child = node + i * d;

                if (child < m)
                    edges[k++] = (struct edge){
                        rank_of(view, shape, &fold, node),
                        rank_of(view, shape, &fold, child),
                        has_blocks ? n * coll__subtree(p, child) : n};
            }
    for (int i = 0; i < p - m; i++)
        edges[k++] = (struct edge){(shape->root + 2 * i) % p,
                                   (shape->root + 2 * i + 1) % p, n};
    return k;
}

/* ---- the walk ------------------------------------------------------------ */

static int level_of(const struct coll__view *view, int a, int b)
{
    int l = 0;

    while (view->levels[l].group &&
           view->levels[l].group[a] != view->levels[l].group[b])
        l++;
    return l;
}

static void occupy(struct lane *lane, double begin, double busy)
{
    lane->free = begin + busy;
    lane->load += busy;
}

/* Send one message of n bytes; its receiver has the vector afterwards. */
static void follow(struct walk *w, int from, int to, double n)
{
    int l = level_of(w->view, from, to);
    const struct coll__level *level = &w->view->levels[l];
    const int *group = l ? w->view->levels[l - 1].group : NULL;
    double near = w->view->levels[0].beta, begin = w->time[from];
    double work = w->is_reduced ? coll__cost_work(w->view, n) : 0;
    struct lane *lanes[4] = {&w->sides[N_SIDES * from + SENDS],
                             &w->sides[N_SIDES * to + RECEIVES]};

    if (group) {
        lanes[2] = &w->links[l][2 * group[from]];
        lanes[3] = &w->links[l][2 * group[to] + 1];
    }
    for (int i = 0; i < 4 && lanes[i]; i++)
        begin = max_double(begin, lanes[i]->free);
    if (w->is_reduced && n > COLL__EAGER)
        begin = max_double(begin, w->time[to]);
    for (int i = 0; i < 4 && lanes[i]; i++)
        occupy(lanes[i], begin,
               i < 2 ? max_double(level->gap, n * near) : n * level->share);
    occupy(&w->sides[N_SIDES * to + WORKS], begin, work);
    w->time[to] =
        work +
        max_double(w->time[to], begin + level->alpha +
                                    n * max_double(level->beta, level->share));
}

static void follow_all(struct walk *w, const struct edge *edges, int n_edges,
                       double pieces)
{
    for (int i = 0; i < n_edges; i++) {
        const struct edge *edge = &edges[w->is_up ? n_edges - 1 - i : i];

        if (w->is_up)
            follow(w, edge->down, edge->up, edge->n / pieces);
        else
            follow(w, edge->up, edge->down, edge->n / pieces);
    }
}

static double last_time(const struct walk *w)
{
    double time = 0;

    for (int r = 0; r < w->view->nranks; r++)
        time = max_double(time, w->time[r]);
    return time;
}

static double most_load(const struct walk *w)
{
    double load = 0;

    for (int i = 0; i < w->n_lanes; i++)
        load = max_double(load, w->sides[i].load);
    return load;
}

static int walk_init(struct walk *w, const struct coll__view *view)
{
    int p = view->nranks;

    *w = (struct walk){.view = view, .n_lanes = N_SIDES * p};
    for (int l = 1; l < view->n_levels; l++)
        w->n_lanes += 2 * view->levels[l - 1].n_groups;
    w->time = calloc((size_t)p, sizeof(*w->time));
    w->sides = calloc((size_t)w->n_lanes, sizeof(*w->sides));
    if (!w->time || !w->sides)
        return COLL_ERR_NOMEM;
    w->links[0] = w->sides;
    for (int l = 1, at = N_SIDES * p; l < view->n_levels; l++) {
        w->links[l] = w->sides + at;
        at += 2 * view->levels[l - 1].n_groups;
    }
    return COLL_OK;
}

double coll__tree_cost(const struct coll__view *view,
                       const struct coll__tree_shape *shape,
                       enum coll__tree_way way, double n)
{
    struct edge *edges = malloc((size_t)view->nranks * sizeof(*edges));
    int is_same = way == TREE_DOWN || way == TREE_REDUCE;
    double k = is_same ? coll__pieces(view, n) : 1, time = HUGE_VAL;
    struct walk w;

    if (walk_init(&w, view) == COLL_OK && edges) {
        int n_edges = list_edges(view, shape, way, n, edges);

        w.is_up = way == TREE_REDUCE || way == TREE_GATHER;
        w.is_reduced = way == TREE_REDUCE;
        follow_all(&w, edges, n_edges, k);
        time = last_time(&w) + (k - 1) * most_load(&w);
    }
    free(edges);
    free(w.time);
    free(w.sides);
    return time;
}

/* ---- closed forms -------------------------------------------------------- */

/* Each message over m = 2^k ranks carries all blocks of its subtree. */
static double even_tree(const struct coll__view *view, int m, double n)
{
    double time = 0;

    for (int d = 1; d < m; d *= 2)
        time += coll__cost_tree(view, d, d * n);
    return time;
}

/* Return the time of a gather or scatter of blocks of n bytes over p ranks of an even
 * view.  Each message carries all blocks of its subtree. */
static double gather(const struct coll__view *view, int p, double n)
{
    int m = power2_below(p), rest = p - m;
    double below, beside;

    if (!rest)
        return even_tree(view, m, n);
    /* only the highest subtree may be incomplete */
    below = coll__cost_message(view, m, rest * n) + gather(view, rest, n);
    beside = coll__cost_message(view, m, rest * n) -
             coll__cost_message(view, m, 0) + even_tree(view, m, n);
    return below > beside ? below : beside;
}

double coll__binomial_tree_cost(const struct coll__view *view,
                                const struct coll__tree_shape *shape,
                                enum coll__tree_way way, double n)
{
    int p = view->nranks;

    if (!coll__tree_is_even(view, shape->root))
        return coll__tree_cost(view, shape, way, n);
    if (way == TREE_SCATTER || way == TREE_GATHER)
        return gather(view, p, n);
    return coll__cost_binomial(view, p, n, way == TREE_REDUCE);
}
