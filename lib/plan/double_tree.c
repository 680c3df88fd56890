/* SPDX-License-Identifier: BSD-3-Clause */
/* double_tree.c - in-order binary trees by the bits of a node's number.
 *
 * Nodes count from 1.  Let h be the lowest set bit of i.  The subtree of node i is i -
 * h + 1 .. i + h - 1, limited to the nodes that exist, and its children are at
 * distance h / 2; odd nodes are leaves.
 */
#include "lib/plan/double_tree.h"
#include "lib/plan/fold.h"
#include "lib/plan/view_cost.h"
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

/* Convert between a node, 0 .. n-1, and its number in a tree, 1 .. n. */
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

/* ---- what crosses the border of a group ---------------------------------- */

/* The nodes of a group, by their numbers in one tree: consecutive ones. */
struct run {
    int first, last; /* 1 .. n */
};

/* How many edges, towards the top, leave or enter the group. */
struct crossing {
    int leave, enter;
};

static int is_within(struct run run, int i)
{
    return run.first <= i && i <= run.last;
}

/* Count the edges of the path from i to the top that cross the low border of the run
 * (or the high one), starting on i's side of it. */
static int count_path(struct run run, int i, int n, int is_low)
{
    int is_in = is_within(run, i), count = 0;

    for (int up = above(i, n); up; i = up, up = above(up, n))
        if (is_in && is_within(run, i))
            count += is_low ? up < run.first : up > run.last;
        else if (!is_in && is_within(run, up))
            count += is_low ? i < run.first : i > run.last;
    return count;
}

/* Count the edges across both borders.  Subtrees are runs too, so the lower end of
 * such an edge is on the path from the node next to the border. */
static void count_edges(struct run run, int n, struct crossing *c)
{
    c->leave += count_path(run, run.first, n, 1);
    c->leave += count_path(run, run.last, n, 0);
    if (run.first > 1)
        c->enter += count_path(run, run.first - 1, n, 1);
    if (run.last < n)
        c->enter += count_path(run, run.last + 1, n, 0);
}

/* Return the place of node 0 in the ring. */
static int place_of_first(const struct coll__problem *pb, int nodes)
{
    return nodes < pb->nranks ? coll__ring_place(pb->view, pb->root) + 1 : 0;
}

static int group_of(const struct coll__problem *pb, int nodes, int l, int node)
{
    int place = place_of_first(pb, nodes) + node;

    return pb->view->levels[l]
        .group[coll__ring_at(pb->view, pb->nranks, place)];
}

/* Count the edges of both trees, those to the root included, across the border of a
 * node's group on level l. */
static struct crossing count_crossing(const struct coll__problem *pb, int nodes,
                                      int l, int node)
{
    int group = group_of(pb, nodes, l, node), from = node, to = node;
    int has_root = nodes < pb->nranks, top = power2_below(nodes);
    struct crossing c = {0, 0};

    while (from > 0 && group_of(pb, nodes, l, from - 1) == group)
        from--;
    while (to + 1 < nodes && group_of(pb, nodes, l, to + 1) == group)
        to++;
    for (int which = 0; which < 2; which++) {
        int a = number_of(from, nodes, which), b = number_of(to, nodes, which);
        int at = group_of(pb, nodes, l, node_of(top, nodes, which));
        int is_root_in = pb->view->levels[l].group[pb->root] == group;

        if (nodes % 2 && a > b) /* in the tree turned by one, number n comes first */
            a = 1;
        count_edges(a < b ? (struct run){a, b} : (struct run){b, a}, nodes, &c);
        if (has_root && (at == group) != is_root_in) {
            c.leave += at == group;
            c.enter += is_root_in;
        }
    }
    return c;
}

/* Return how many messages, for one piece of both halves, cross the border of a group
 * of level l in the busier direction.  Three groups are looked at; groups differ
 * little. */
static int n_crossing(const struct coll__problem *pb, int nodes, int l,
                      int passes)
{
    int most = 0;

    for (int i = 1; i < 4; i++) {
        struct crossing c =
            count_crossing(pb, nodes, l, (int)((long)nodes * i / 4));
        int n = passes > 1          ? c.leave + c.enter
                : c.leave > c.enter ? c.leave
                                    : c.enter;

        most = n > most ? n : most;
    }
    return most;
}

/* ---- cost ---------------------------------------------------------------- */

/* Roughly the number of levels whose nodes have two children. */
static int n_inner(int nodes) { return log2_up(nodes + 1) - 1; }

/* Return the idle time of a link, in messages of a piece, at the beginning of the way
 * up.  A leaf's bytes are ready from the beginning, so a rank first sends the half in
 * which it is a leaf; the sums of the other half come later.  If the result comes back,
 * only ranks far from the leaves are idle.  This does not apply to shared memory, where
 * sent bytes wait in a few cells (measured: a reduce of 8 MiB over 8 ranks uses a tenth
 * less of the processors than a chain). */
static double idle_first(int nodes, int passes)
{
    return passes > 1 ? 1 - 2.0 / (1 << n_inner(nodes)) : 1;
}

/* Return the additional idle time because sums are late.  A long vector of the second child
 * waits, piece by piece, for that of the first child.  Suppose that the first child's
 * pieces take the share x of the link.  The second child's pieces come as fast and get
 * the share x of the rest: x = 1 / (1 + x).  So sums leave at 1 - x of the link's
 * speed, and the rest comes late: (1 - x)^i of it i levels up. */
static double idle_late(int nodes)
{
    const double x = 0.618;
    double far = 1;

    for (int i = 1; i < n_inner(nodes); i++)
        far *= 1 - x;
    return x * (1 - far);
}

/* Return the seconds a byte of one of a few messages across a border of level l.
 * level->share counts one message from each rank of the largest group.  If groups
 * differ, the links of the smallest group carry as many messages. */
static double border_share(const struct coll__view *view, int l)
{
    const struct coll__level *level = &view->levels[l], *below = level - 1;
    double share = level->share * below->size_max / below->size_min;

    return below->size_min == below->size_max
               ? level->share
               : max_double(level->share,
                            share < level->beta ? share : level->beta);
}

/* Return the seconds a byte if the groups of a level are in a row: an edge uses all
 * links between its ends.  Each level of the tree has one edge over every link, half of
 * them in each direction. */
static double in_a_row(const struct coll__level *level, int nodes, int passes)
{
    return level->spread > 1 ? level->share * n_inner(nodes) * passes : 0;
}

/* Return the time from one piece of both halves, n bytes each, to the next.  If one
 * tree goes up a link, the other goes down it. */
static double next_pieces(const struct coll__problem *pb, int nodes, double n,
                          int passes, const struct coll__tree_load *load)
{
    const struct coll__view *view = pb->view;
    const struct coll__level *near = &view->levels[0];
    double idle =
        load->n_reduced && n > COLL__EAGER ? idle_first(nodes, passes) : 0;
    double first = near->once > 0 ? 0 : idle;
    double late = first > 0 ? idle_late(nodes) : 0;
    /* with two ranks, the root sends nothing to the other rank */
    double link = max_double(near->beta, near->share) *
                  (nodes > 1 ? coll__both_ways(near) : 1);
    double work = coll__cost_work(view, load->n_reduced * n);
    double time = max_double(
        first * n * link + work * (1 + late / 2),
        n * link * (load->n_messages + first + (passes > 1 ? 0 : late)));

    time = max_double(time, n * in_a_row(near, nodes, passes));
    time =
        max_double(time, load->n_messages * near->gap * coll__both_ways(near));
    for (int l = 1; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];

        if (level->size_max == view->levels[l - 1].size_max)
            continue;
        time = max_double(time, load->n_messages * level->gap *
                                    coll__both_ways(level));
        time = max_double(time, 2 * n * level->beta * coll__both_ways(level));
        time = max_double(time, n * in_a_row(level, nodes, passes));
        time = max_double(time,
                          n * border_share(view, l) * coll__both_ways(level) *
                              (n_crossing(pb, nodes, l - 1, passes) + idle));
    }
    return time;
}

/* Return the time of two messages of n bytes that are reduced as they come. */
static double in_turn(const struct coll__view *view, int distance, double n)
{
    double work = coll__cost_work(view, n);
    double one = coll__cost_fan(view, 1, distance, n);
    double next = coll__cost_fan(view, 2, distance, n) - one;

    return one + max_double(next, work) + work;
}

/* Return the time of a hop towards the top, from `fan` children.  The second child's
 * bytes are added to the first child's; long messages wait for that. */
static double hop_up(const struct coll__view *view, int fan, int distance,
                     double n)
{
    double one = coll__cost_fan(view, 1, distance, n) +
                 coll__cost_work(view, n);

    if (fan == 1)
        return one;
    return n > COLL__EAGER ? 2 * one : in_turn(view, distance, n);
}

/* Return the time between the root and the tops of both trees, for one half each.  If
 * one node is the top of both, it sends one half after the other; each of two nodes
 * gets both halves at once. */
static double root_hop(const struct coll__view *view, int nodes, double n,
                       int is_up)
{
    double all = coll__cost_fan(view, 2, view->nranks, n);

    if (is_up && nodes == 1)
        return in_turn(view, view->nranks, n);
    if (is_up)
        return all + coll__cost_work(view, 2 * n);
    return nodes == 2 && n > COLL__EAGER ? all + coll__cost_next(view, n) : all;
}

/* Return the distance between ranks of a hop over 2^i nodes on the longest way: it may
 * cross the border of a group.  A tree that is turned by one has leaves on the other
 * side of a border. */
static int reach(const struct coll__view *view, int i, int is_turned)
{
    if (!i && is_turned)
        return view->levels[0].size_max;
    return 2 << i;
}

double coll__double_tree_cost(const struct coll__problem *pb, int nodes,
                              int passes, struct coll__tree_load load)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb);
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
    if (k <= 1)
        return time;
    return time + (k - 1) * next_pieces(pb, nodes, piece, passes, &load);
}
