/* SPDX-License-Identifier: BSD-3-Clause */
/* double_tree.c - in-order binary trees by the bits of a node's number.
 *
 * Count nodes from 1.  With h the lowest bit of i that is set, the subtree of
 * node i is i - h + 1 .. i + h - 1, as far as it goes, and h / 2 is how far its
 * children are away; odd nodes are leaves.
 */
#include "lib/algo/double_tree.h"
#include "lib/util/util.h"

static int above(int i, int n)
{
    int h = i & -i, up = (i ^ h) | 2 * h;

    return up > n ? i ^ h : up; /* 0: it is the top */
}

/* The tree over 1 .. n. */
static struct coll__tree_node in_order(int i, int n)
{
    struct coll__tree_node node = {.up = above(i, n)};
    int half = (i & -i) / 2;

    if (half)
        node.down[node.n_down++] = i - half;
    while (half && i + half > n)
        half /= 2;
    if (half)
        node.down[node.n_down++] = i + half;
    return node;
}

/* Between a node, 0 .. n-1, and its number in a tree, 1 .. n. */
static int number_of(int node, int n, int which)
{
    if (!which)
        return node + 1;
    return n % 2 ? (node + n - 1) % n + 1 : n - node;
}

static int node_of(int i, int n, int which)
{
    if (!which)
        return i - 1;
    return n % 2 ? i % n : n - i;
}

struct coll__tree_node coll__double_tree(int n, int which, int node)
{
    struct coll__tree_node at = in_order(number_of(node, n, which), n);

    at.up = at.up ? node_of(at.up, n, which) : -1;
    for (int i = 0; i < at.n_down; i++)
        at.down[i] = node_of(at.down[i], n, which);
    return at;
}

static int rank_behind_root(const struct coll__problem *pb, int node)
{
    int root = coll__ring_place(pb->view, pb->root);

    return coll__ring_at(pb->view, pb->nranks, root + 1 + node);
}

struct coll__rooted coll__double_tree_rooted(const struct coll__problem *pb,
                                             int which)
{
    int p = pb->nranks, v = coll__ring_place(pb->view, pb->rank) -
                            coll__ring_place(pb->view, pb->root);
    struct coll__rooted at = {.up = -1};
    struct coll__tree_node node;

    if (p == 1)
        return at;
    if (!v) {
        at.down[at.n_down++] =
            rank_behind_root(pb, node_of(power2_below(p - 1), p - 1, which));
        return at;
    }
    node = coll__double_tree(p - 1, which, (v - 1 + p) % p);
    at.up = node.up < 0 ? pb->root : rank_behind_root(pb, node.up);
    for (; at.n_down < node.n_down; at.n_down++)
        at.down[at.n_down] = rank_behind_root(pb, node.down[at.n_down]);
    return at;
}

/* From one piece of both halves, n bytes each, to the next. */
static double next_pieces(const struct coll__view *view, double n,
                          const struct coll__tree_load *load)
{
    double time = coll__cost_work(view, load->n_reduced * n);

    for (int l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];
        double beta = max_double(load->n_messages * level->beta,
                                 (l ? load->n_crossing : load->n_messages) *
                                     level->share);

        if (l && level->size_max == view->levels[l - 1].size_max)
            continue;
        time = max_double(time, n * beta);
        time = max_double(time, load->n_messages * level->gap);
    }
    return time;
}

/* Two messages of n bytes that are reduced as they come. */
static double in_turn(const struct coll__view *view, int distance, double n)
{
    double work = coll__cost_work(view, n);
    double one = coll__cost_fan(view, 1, distance, n);
    double next = coll__cost_fan(view, 2, distance, n) - one;

    return one + max_double(next, work) + work;
}

/* A hop towards the top, from `fan` children.  What the second one sends is
 * added to what has come from the first one: if it is long, it waits for that.
 */
static double hop_up(const struct coll__view *view, int fan, int distance,
                     double n)
{
    double one = coll__cost_fan(view, 1, distance, n) +
                 coll__cost_work(view, n);

    if (fan == 1)
        return one;
    return n > COLL__EAGER ? 2 * one : in_turn(view, distance, n);
}

/* Between the root and both tops, a half each.  A single top sends one after
 * the other; of two nodes each one gets both halves at once. */
static double root_hop(const struct coll__view *view, int nodes, double n,
                       int is_up)
{
    double all = coll__cost_fan(view, 2, view->nranks, n);

    if (is_up && nodes == 1)
        return in_turn(view, view->nranks, n);
    if (is_up)
        return all + coll__cost_work(view, 2 * n);
    return nodes == 2 && n > COLL__EAGER
               ? all + coll__cost_ring_next(view, n)
               : all;
}

/* How far away the ranks of a hop over 2^i nodes are on the longest way: across
 * the border of groups that it may cross.  A tree that is turned by one has
 * leaves on the other side of a border. */
static int reach(const struct coll__view *view, int i, int is_turned)
{
    if (!i && is_turned)
        return view->levels[0].size_max;
    return 2 << i;
}

double coll__double_tree_cost(const struct coll__view *view, int nodes,
                              double n, int passes, struct coll__tree_load load)
{
    double k = coll__pieces(view, n / 2), piece = n / 2 / k, time = 0;
    struct coll__view in_order = *view; /* as nodes are counted */
    int has_root = nodes < view->nranks, up = load.n_reduced > 0;

    in_order.is_contiguous = 1;
    for (int i = 0; 2 << i <= nodes; i++) {
        int fan = 2 << i == nodes ? 1 : 2;
        int distance = reach(view, i, nodes % 2);

        if (up)
            time += hop_up(&in_order, fan, distance, piece);
        if (passes > up)
            time += coll__cost_fan(&in_order, fan, distance, piece);
    }
    if (has_root)
        time += root_hop(&in_order, nodes, piece, up);
    return time + (k - 1) * next_pieces(view, piece, &load);
}
