/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical allgather: each group's leader collects the group's blocks,
 * level by level; the leaders of the outermost groups allgather whole groups'
 * blocks; the result is broadcast down through the leaders.
 *
 * With n bytes from each rank, k leaders in a group, m ranks in a group of the
 * level below, and h outermost groups, T = sum over inner levels of
 * (alpha + (k - 1) (gap + m n beta)) + the allgather of p/h n bytes from each of h
 * + the broadcasts of p n bytes inside.  The cheapest flat algorithms do the
 * allgather and the broadcasts.  Best if messages between the outermost groups are
 * expensive: each group sends and receives its bytes there once, in at most h - 1
 * messages.
 *
 *   p = 5, hosts 0 1 2 and 3 4, one column a rank
 *     start        collect      allgather    broadcast
 *     a . . . .    a . . . .    a . . a .    a a a a a
 *     . b . . .    b b . . .    b b . b .    b b b b b
 *     . . c . .    c . c . .    c . c c .    c c c c c
 *     . . . d .    . . . d .    d . . d .    d d d d d
 *     . . . . e    . . . e e    e . . e e    e e e e e
 *
 * Blocks are kept group after group on every level, so each group's blocks are
 * one run that begins with its leader's.  They are kept in OUT itself if the ranks
 * are in that order and blocks are equal; else in scratch, which adds p n gamma.
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000.
 */
#include "lib/algo/levels.h"
#include "lib/util/util.h"

#include <stdlib.h>

static const char *const allgathers[] = {"recursive_doubling", "ring", "bruck",
                                         "direct", NULL};
static const char *const broadcasts[] = {"binomial", "chain",
                                         "scatter_allgather", NULL};

struct tree {
    const struct coll__problem *pb;
    struct coll__plan *plan;
    enum coll__buf buf; /* the blocks, group after group */
    int *order, n;      /* [n = p]: the ranks in that order */
    int *place;         /* [p]: place of a rank in it */
    size_t *at;         /* [p + 1]: bytes before each place */
};

/* ---- where blocks are ---------------------------------------------------- */

static int is_in_place_order(const struct coll__problem *pb)
{
    return pb->view->is_contiguous && !pb->out_counts;
}

/* Append the ranks of a rank's group to the order. */
static void add_group(struct tree *tree, int level, int rank)
{
    const struct coll__view *view = tree->pb->view;
    int n;
    const int *members = coll__view_group(view, level, rank, &n);

    for (int i = 0; i < n; i++) {
        if (!coll__leads(view, level, members[i], COLL__NO_ROOT))
            continue;
        if (level) {
            add_group(tree, level - 1, members[i]);
            continue;
        }
        tree->place[members[i]] = tree->n;
        tree->order[tree->n++] = members[i];
    }
}

static void tree_fini(struct tree *tree)
{
    free(tree->order);
    free(tree->at);
}

static int tree_init(struct tree *tree, const struct coll__problem *pb,
                     struct coll__plan *plan)
{
    int p = pb->nranks;

    *tree = (struct tree){.pb = pb, .plan = plan, .buf = BUF_TMP};
    if (is_in_place_order(pb))
        tree->buf = BUF_OUT;
    tree->order = coll__plan_alloc(plan, 2 * p, sizeof(*tree->order));
    tree->at = coll__plan_alloc(plan, p + 1, sizeof(*tree->at));
    if (!tree->order || !tree->at) {
        tree_fini(tree);
        return plan_status(plan);
    }
    tree->place = tree->order + p;
    add_group(tree, pb->view->n_levels - 1, 0);
    for (int i = 0; i < p; i++)
        tree->at[i + 1] =
            tree->at[i] + coll__part(pb, BUF_OUT, tree->order[i]).len;
    if (tree->buf == BUF_TMP) /* the scratch of nested plans must begin after it */
        plan->tmp_len = max_size(plan->tmp_len, tree->at[p]);
    return COLL_OK;
}

/* Return the blocks of n places, from place `from` on. */
static struct coll__span places(const struct tree *tree, int place, int n)
{
    return (struct coll__span){tree->buf, tree->at[place],
                               tree->at[place + n] - tree->at[place]};
}

/* Return the blocks of the group below `level` that a rank leads. */
static struct coll__span led_by(const struct tree *tree, int level, int rank)
{
    int n = 1;

    if (level)
        coll__view_group(tree->pb->view, level - 1, rank, &n);
    return places(tree, tree->place[rank], n);
}

/* ---- the three parts ----------------------------------------------------- */

static void collect(const struct tree *tree, int level,
                    const struct coll__team *in)
{
    if (in->me > 0)
        plan_send(tree->plan, in->ranks[0],
                  led_by(tree, level, tree->pb->rank));
    for (int i = 1; i < in->n && in->me == 0; i++)
        plan_recv(tree->plan, in->ranks[i], led_by(tree, level, in->ranks[i]));
}

/* Return the problem of one level, for its price.  bytes: of one block of an allgather(v),
 * or of all of a broadcast. */
static struct coll__problem priced_of(const struct coll__problem *pb,
                                      enum coll_collective collective,
                                      const struct coll__view *flat,
                                      double bytes)
{
    struct coll__problem priced = coll__level_problem(pb, collective, flat);

    priced.type = COLL_U8; /* a mean may not be a whole number of elements */
    priced.count = (size_t)bytes;
    return priced;
}

/* Set the counts of whole groups; returns 1 if they are all equal. */
static int count_groups(const struct tree *tree, int level,
                        const struct coll__team *in, size_t *counts,
                        size_t *displs)
{
    size_t size = coll_type_size(tree->pb->type);
    int is_even = 1;

    for (int i = 0; i < in->n; i++) {
        struct coll__span span = led_by(tree, level, in->ranks[i]);

        counts[i] = span.len / size;
        displs[i] = span.off / size;
        is_even &= counts[i] == counts[0];
    }
    return is_even;
}

static void join(const struct tree *tree, int level,
                 const struct coll__team *in, const struct coll__view *flat)
{
    const struct coll__problem *pb = tree->pb;
    size_t *counts = coll__plan_alloc(tree->plan, 2 * in->n, sizeof(*counts));
    struct coll__frame frame = {.ranks = in->ranks,
                                .out = places(tree, 0, pb->nranks)};
    struct coll__problem priced =
        priced_of(pb, COLL_ALLGATHER, flat, (double)frame.out.len / in->n);
    struct coll__problem inner = priced;

    if (!counts)
        return;
    if (!count_groups(tree, level, in, counts, counts + in->n)) {
        inner.collective = COLL_ALLGATHERV;
        inner.out_counts = counts;
        inner.out_displs = counts + in->n;
    }
    inner.type = pb->type;
    inner.count = counts[in->me];
    inner.rank = in->me;
    inner.in_place = 1;
    coll__plan_cheapest(tree->plan, &inner, &priced, allgathers, &frame);
    free(counts);
}

static void spread(const struct tree *tree, const struct coll__team *in,
                   const struct coll__view *flat)
{
    const struct coll__problem *pb = tree->pb;
    struct coll__span all = places(tree, 0, pb->nranks);
    struct coll__frame frame = {.ranks = in->ranks, .in = all, .out = all};
    struct coll__problem priced =
        priced_of(pb, COLL_BROADCAST, flat, (double)all.len);
    struct coll__problem inner = priced;

    inner.type = pb->type;
    inner.count = all.len / coll_type_size(pb->type);
    inner.rank = in->me;
    inner.in_place = in->me == 0;
    coll__plan_cheapest(tree->plan, &inner, &priced, broadcasts, &frame);
}

/* ---- the whole ----------------------------------------------------------- */

/* Write the steps of this level; the levels above come in the middle. */
static void climb(const struct tree *tree, int level)
{
    const struct coll__problem *pb = tree->pb;
    struct coll__team in;
    struct coll__view flat;

    if (!coll__leads(pb->view, level, pb->rank, COLL__NO_ROOT) ||
        coll__team_of_leaders(&in, tree->plan, pb, level, COLL__NO_ROOT))
        return;
    coll__level_view(&flat, pb->view, level, in.n);
    if (level == pb->view->n_levels - 1) {
        join(tree, level, &in, &flat);
    } else {
        collect(tree, level, &in);
        climb(tree, level + 1);
        spread(tree, &in, &flat);
    }
    coll__team_fini(&in);
}

/* Copy the blocks from the order of groups to their places in OUT. */
static void place_all(const struct tree *tree)
{
    const struct coll__problem *pb = tree->pb;

    for (int i = 0, n; i < pb->nranks; i += n) {
        int first = tree->order[i];

        for (n = 1; i + n < pb->nranks; n++)
            if (tree->order[i + n] != first + n)
                break;
        coll__plan_unpack(pb, tree->plan, first, n, places(tree, i, n));
    }
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct tree tree;

    if (tree_init(&tree, pb, plan))
        return plan_status(plan);
    plan_copy(plan, led_by(&tree, 0, pb->rank), coll__own_in(pb));
    climb(&tree, 0);
    if (tree.buf == BUF_TMP)
        place_all(&tree);
    tree_fini(&tree);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = coll__mean_part(pb, BUF_OUT), all = n * pb->nranks;
    double time = 0;
    struct coll__problem inner;
    struct coll__view flat;
    int top = view->n_levels - 1, outer = view->levels[top - 1].n_groups;

    for (int l = 0; l < top; l++) {
        int k = coll__level_fan(view, l).most;
        int below = l ? view->levels[l - 1].size_max : 1;

        coll__level_view(&flat, view, l, k);
        inner = priced_of(pb, COLL_BROADCAST, &flat, all);
        time += coll__cheapest_cost(&inner, broadcasts) +
                coll__cost_fan(&flat, k - 1, k - 1, n * below);
        /* leaders send their blocks inside while the rest arrives; with two groups,
         * none of the rest is passed on between them */
        if (all > COLL__EAGER)
            time += coll__cost_next(&flat, all * (outer > 2 ? 0.75 : 0.375));
    }
    coll__level_view(&flat, view, top, outer);
    inner = priced_of(pb, COLL_ALLGATHER, &flat, all / outer);
    time += coll__cheapest_cost(&inner, allgathers);
    return is_in_place_order(pb) ? time : time + coll__cost_work(view, all);
}

const struct coll__algo coll__algo_allgather_hierarchical = {
    .name = "hierarchical",
    .what = "leaders collect, exchange whole groups, and broadcast",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .build = build,
    .cost = cost,
    .refuses = coll__needs_groups,
};
