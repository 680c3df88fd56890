/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical alltoall: first inside each group, so that every rank holds all
 * blocks of its group for the ranks of its own index; then among the ranks of one
 * index, all blocks of a group in one message.
 *
 * With n bytes for each rank, h outermost groups of s ranks,
 * T = alpha + (s - 1) (gap + h n beta) on a group's links
 * + alpha + (h - 1) (gap + s n beta) on the outermost + 2 p n gamma.  Best for
 * medium n on many hosts: s + h - 2 messages in place of p - 1, and the same
 * bytes between the groups.
 *
 *   p = 4, hosts 0 1 and 2 3: what rank 0 holds ("a->b": from a, for b)
 *     start    0->0 0->1 0->2 0->3
 *     inside   0->0 0->2 1->0 1->2      gave 0->1 0->3, got 1->0 1->2
 *     across   0->0 1->0 2->0 3->0      gave 0->2 1->2, got 2->0 3->0
 *
 * Source: Traff, "Hierarchical gather/scatter algorithms with graceful
 * degradation", IPDPS 2004, for the idea of exchange by index.
 */
#include "lib/algo/levels.h"

/* Groups have `size` ranks each; this rank is number i of group h. */
struct grid {
    const struct coll__problem *pb;
    const struct coll__level *hosts;
    int size, n_hosts, i, h;
};

static struct grid grid_of(const struct coll__problem *pb)
{
    const struct coll__level *hosts = &pb->view->levels[pb->view->n_levels - 2];

    return (struct grid){pb,
                         hosts,
                         hosts->size_max,
                         hosts->n_groups,
                         hosts->index[pb->rank],
                         hosts->group[pb->rank]};
}

static int rank_at(const struct grid *g, int h, int i)
{
    return g->hosts->members[h * g->size + i];
}

/* Return n blocks of one of the three areas of scratch, from block `at` on. */
enum area { LEAVING, HELD, CROSSING };

static struct coll__span blocks(const struct grid *g, enum area area, int at,
                                int n)
{
    return coll__parts(g->pb, BUF_TMP, (int)area * g->pb->nranks + at, n);
}

/* Send to rank j of this group all blocks for ranks of index j.  Rank j then holds the
 * blocks for its index, by source, then by group. */
static void inside(const struct grid *g, struct coll__plan *plan)
{
    enum coll__buf in = g->pb->in_place ? BUF_OUT : BUF_IN;
    int n = g->n_hosts;

    for (int s = 0; s < g->size; s++) {
        int to = (g->i + s) % g->size, from = (g->i - s + g->size) % g->size;
        enum area area = s ? LEAVING : HELD;

        for (int h = 0; h < n; h++)
            plan_copy(plan, blocks(g, area, to * n + h, 1),
                      coll__part(g->pb, in, rank_at(g, h, to)));
        if (!s)
            continue;
        plan_send(plan, rank_at(g, g->h, to), blocks(g, LEAVING, to * n, n));
        plan_recv(plan, rank_at(g, g->h, from), blocks(g, HELD, from * n, n));
    }
}

/* Pack this group's blocks for rank i of group h. */
static void pack(const struct grid *g, struct coll__plan *plan, int h)
{
    for (int i = 0; i < g->size; i++)
        plan_copy(plan, blocks(g, CROSSING, h * g->size + i, 1),
                  blocks(g, HELD, i * g->n_hosts + h, 1));
}

/* Copy the blocks that came from group h to their places in OUT. */
static void take(const struct grid *g, struct coll__plan *plan, int h)
{
    int peer = rank_at(g, h, g->i);
    struct coll__span got = blocks(g, LEAVING, h * g->size, g->size);

    if (g->pb->view->is_contiguous) {
        plan_recv(plan, peer,
                  coll__parts(g->pb, BUF_OUT, h * g->size, g->size));
        return;
    }
    plan_recv(plan, peer, got);
    for (int i = 0; i < g->size; i++)
        plan_copy(plan, coll__part(g->pb, BUF_OUT, rank_at(g, h, i)),
                  blocks(g, LEAVING, h * g->size + i, 1));
}

static void across(const struct grid *g, struct coll__plan *plan)
{
    for (int s = 1; s < g->n_hosts; s++) {
        int to = (g->h + s) % g->n_hosts;

        pack(g, plan, to);
        plan_send(plan, rank_at(g, to, g->i),
                  blocks(g, CROSSING, to * g->size, g->size));
        take(g, plan, (g->h - s + g->n_hosts) % g->n_hosts);
    }
    for (int i = 0; i < g->size; i++) /* from this group itself */
        plan_copy(plan, coll__part(g->pb, BUF_OUT, rank_at(g, g->h, i)),
                  blocks(g, HELD, i * g->n_hosts + g->h, 1));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct grid g = grid_of(pb);

    inside(&g, plan);
    across(&g, plan);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    const struct coll__level *hosts = &view->levels[view->n_levels - 2];
    double n = (double)coll__problem_bytes(pb);

    /* one of the two copies overlaps with messages */
    return coll__cost_within(view, view->n_levels - 2, hosts->n_groups * n) +
           coll__cost_across(view, n) + coll__cost_work(view, n * pb->nranks);
}

static const char *refuses(const struct coll__problem *pb)
{
    const struct coll__level *hosts;

    if (coll__needs_groups(pb))
        return coll__needs_groups(pb);
    hosts = &pb->view->levels[pb->view->n_levels - 2];
    return hosts->size_min == hosts->size_max ? NULL
                                              : "needs groups of equal size";
}

const struct coll__algo coll__algo_alltoall_hierarchical = {
    .name = "hierarchical",
    .what = "inside groups, then whole groups' blocks across",
    .serves = COLL_FOR(ALLTOALL),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
    .refuses = refuses,
};
