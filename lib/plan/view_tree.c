/* SPDX-License-Identifier: BSD-3-Clause */
/* view_tree.c - the time of a tree, message by message.
 *
 * A message from rank a to rank b is ready when a has what it sends; view_lanes.h says how
 * long it takes.  A long vector that is reduced also waits until b has added the one
 * before.
 *
 * Vectors that are cut into pieces take the time of the first piece on its way, and
 * then the busiest part of the machine decides: each of the other pieces takes as long
 * as this part needs for a piece.
 */
#include "lib/plan/view_tree.h"
#include "lib/plan/fold.h"
#include "lib/plan/view_lanes.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <math.h>
#include <stdlib.h>

/* A message between two ranks. */
struct edge {
    int up, down;
    double n; /* bytes */
};

struct walk {
    struct coll__lanes lanes;
    int is_up, is_reduced;
    double *time; /* [nranks]: when a rank has its vector */
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

/* Send one message of n bytes; its receiver has the vector afterwards. */
static void follow(struct walk *w, int from, int to, double n)
{
    struct coll__sending sending = {from, to, n, w->time[from], 0};
    double there, left;

    if (w->is_reduced && n > COLL__EAGER)
        sending.ready = max_double(sending.ready, w->time[to]);
    there = coll__lanes_send(&w->lanes, &sending, &left);
    w->time[to] = max_double(w->time[to], there);
    if (w->is_reduced)
        w->time[to] = coll__lanes_work(&w->lanes, to, w->time[to], n);
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

    for (int r = 0; r < w->lanes.view->nranks; r++)
        time = max_double(time, w->time[r]);
    return time;
}

static int walk_init(struct walk *w, const struct coll__view *view)
{
    *w = (struct walk){.time = calloc((size_t)view->nranks, sizeof(*w->time))};
    if (coll__lanes_init(&w->lanes, view))
        return COLL_ERR_NOMEM;
    return w->time ? COLL_OK : COLL_ERR_NOMEM;
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
        time = last_time(&w) + (k - 1) * coll__lanes_load(&w.lanes);
    }
    free(edges);
    free(w.time);
    coll__lanes_fini(&w.lanes);
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
