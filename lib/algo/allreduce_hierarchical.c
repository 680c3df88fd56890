/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical allreduce: on each level of the machine, from the inside,
 * a reduce-scatter within the group.  On the next level each rank works on its shard,
 * with the ranks of the other groups that have the same shard.  The last level has an
 * allreduce, and the way back has allgathers.
 *
 * With g ranks a group, n/g bytes of each rank leave the group, from all g ranks
 * at the same time: all rails are busy, and none carries a byte twice.  Each level
 * uses the cheapest algorithm for its problem, and T is the sum over the levels.
 * Best for large n if the levels' bandwidths differ much.
 *
 *   p = 4, two hosts of two; n = ab, X = sum over all ranks
 *     rank  start   within host   between hosts   within host
 *     0     a b     a0+a1 .       X .             X X
 *     1     a b     . b0+b1       . X             X X
 *     2     a b     a2+a3 .       X .             X X
 *     3     a b     . b2+b3       . X             X X
 *
 * If groups differ in size, each has as many shards as the smallest group has
 * ranks.
 *
 * Source: Cho et al., "BlueConnect", SysML 2019; Jia et al., arXiv 1807.11205,
 * 2018 (hierarchical all-reduce).
 */
#include "lib/algo/levels.h"
#include "lib/trace/log.h"

#include <math.h>
#include <stdlib.h>

/* How a team's vector is cut: [n] each, for the v collectives.  For prices all parts
 * count as long as the longest; a rank without a part only waits. */
struct cut {
    size_t *counts, *displs, *longest;
    int owners; /* the first `owners` ranks have a part */
};

/* Cut the vector among the first `owners` of n ranks. */
static int cut_init(const struct coll__problem *pb, struct coll__span vector,
                    int n, int owners, struct cut *cut)
{
    cut->counts = calloc(3 * (size_t)n, sizeof(size_t));
    if (!cut->counts) {
        log_error("plan", "no memory to cut a vector for %d ranks", n);
        return COLL_ERR_NOMEM;
    }
    cut->owners = owners;
    cut->displs = cut->counts + n;
    cut->longest = cut->displs + n;
    coll__cut_counts(pb, vector, n, owners, cut->counts);
    for (int i = 0; i < n; i++)
        cut->longest[i] = cut->counts[0];
    return COLL_OK;
}

/* Return the problem that a team solves on a level below the last, to find its price:
 * the reduce-scatter here, the allgather in the next function. */
static struct coll__problem scatter_of(const struct coll__problem *pb,
                                       const struct coll__view *flat,
                                       const struct cut *cut)
{
    struct coll__problem inner =
        coll__level_problem(pb, COLL_REDUCE_SCATTERV, flat);

    inner.in_counts = cut->longest;
    inner.in_displs = cut->displs;
    return inner;
}

static struct coll__problem gather_of(const struct coll__problem *pb,
                                      const struct coll__view *flat,
                                      const struct cut *cut)
{
    struct coll__problem inner = coll__level_problem(pb, COLL_ALLGATHERV, flat);

    inner.out_counts = cut->longest;
    inner.out_displs = cut->displs;
    return inner;
}

/* How far the way up through the levels has come. */
struct climb {
    const struct coll__problem *pb;
    struct coll__plan *plan;
    int level;
    double flows;             /* shards in a group of the level below */
    struct coll__span vector; /* this rank's shard, in OUT */
    struct coll__span own;    /* this rank's operand: the same span, or in IN */
};

static void climb(struct climb c);

static int is_out(const struct climb *c) { return c->own.buf == BUF_OUT; }

static void allreduce(const struct climb *c, const struct coll__team *team,
                      const struct coll__view *flat)
{
    struct coll__frame frame = {team->ranks, c->own, c->vector};
    struct coll__problem inner =
        coll__level_problem(c->pb, COLL_ALLREDUCE, flat);

    inner.rank = team->me;
    inner.count = c->vector.len / coll_type_size(c->pb->type);
    inner.in_place = is_out(c);
    c->plan->phase = (unsigned)c->level;
    coll__plan_cheapest(c->plan, &inner, &inner, NULL, &frame);
    plan_finish(c->pb, c->plan, c->vector);
}

/* Reduce-scatter; then the outer levels for this rank's own shard, if it has one; then
 * allgather. */
static void between(const struct climb *c, const struct coll__team *team,
                    const struct coll__view *flat, const struct cut *cut)
{
    size_t size = coll_type_size(c->pb->type);
    struct coll__span shard = {BUF_OUT,
                               c->vector.off + cut->displs[team->me] * size,
                               cut->counts[team->me] * size};
    struct coll__frame frame = {team->ranks, c->own, shard};
    struct coll__problem priced = scatter_of(c->pb, flat, cut);
    struct coll__problem inner = priced;
    struct climb next = *c;
    int last = c->pb->view->n_levels - 1;

    inner.in_counts = cut->counts;
    inner.rank = team->me;
    inner.count = cut->counts[team->me];
    inner.in_place = inner.spoils_in = is_out(c);
    c->plan->phase = (unsigned)c->level;
    coll__plan_cheapest(c->plan, &inner, &priced, NULL, &frame);
    if (team->me < cut->owners) {
        next.level++;
        next.flows *= cut->owners;
        next.vector = next.own = shard;
        climb(next);
    }
    priced = gather_of(c->pb, flat, cut);
    inner = priced;
    inner.out_counts = cut->counts;
    inner.rank = team->me;
    inner.count = cut->counts[team->me];
    inner.in_place = 1;
    frame.out = c->vector;
    c->plan->phase = (unsigned)(2 * last - c->level);
    coll__plan_cheapest(c->plan, &inner, &priced, NULL, &frame);
}

static void climb(struct climb c)
{
    const struct coll__view *view = c.pb->view;
    int owners = coll__level_fan(view, c.level).least;
    struct coll__team team;
    struct coll__view flat;
    struct cut cut = {0};

    if (coll__team_of_index(&team, c.plan, c.pb, c.level))
        return;
    coll__level_view_of_flows(&flat, view, c.level, team.n, c.flows);
    if (c.level == view->n_levels - 1)
        allreduce(&c, &team, &flat);
    else if (cut_init(c.pb, c.vector, team.n, owners, &cut) == COLL_OK)
        between(&c, &team, &flat, &cut);
    else
        c.plan->status = COLL_ERR_NOMEM;
    free(cut.counts);
    coll__team_fini(&team);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    climb((struct climb){.pb = pb,
                         .plan = plan,
                         .flows = 1,
                         .vector = coll__whole(pb, BUF_OUT),
                         .own = coll__own_in(pb)});
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    struct coll__span vector = coll__whole(pb, BUF_OUT);
    double time = 0, flows = 1;
    struct coll__problem inner;
    struct coll__view flat;
    int last = pb->view->n_levels - 1;

    for (int l = 0; l < last; l++) {
        struct coll__fan fan = coll__level_fan(pb->view, l);
        struct cut cut;

        if (cut_init(pb, vector, fan.most, fan.least, &cut))
            return HUGE_VAL;
        coll__level_view_of_flows(&flat, pb->view, l, fan.most, flows);
        inner = scatter_of(pb, &flat, &cut);
        time += coll__cheapest_cost(&inner, NULL);
        inner = gather_of(pb, &flat, &cut);
        time += coll__cheapest_cost(&inner, NULL);
        free(cut.counts);
        flows *= fan.least;
        vector = coll__cut(pb, vector, fan.least, 0);
    }
    coll__level_view_of_flows(&flat, pb->view, last,
                              coll__level_fan(pb->view, last).most, flows);
    inner = coll__level_problem(pb, COLL_ALLREDUCE, &flat);
    inner.count = vector.len / coll_type_size(pb->type);
    return time + coll__cheapest_cost(&inner, NULL);
}

const struct coll__algo coll__algo_allreduce_hierarchical = {
    .name = "hierarchical",
    .what = "level by level, every rank with a shard of its own",
    .serves = COLL_FOR(ALLREDUCE),
    .build = build,
    .cost = cost,
    .refuses = coll__needs_groups,
    .goes_up = 1,
};
