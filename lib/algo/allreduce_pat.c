/* SPDX-License-Identifier: BSD-3-Clause */
/* PAT allreduce: PAT's reduce-scatter of p blocks, then PAT's allgather.
 *
 * T is the sum of the two (see their files): 2 log2(p) messages one after the other,
 * for any p, without a fold; most bytes go between neighbours.  Best for medium n if
 * far links are expensive.
 *
 *   p = 3, one column a rank, blocks from the top, X = sum over all ranks
 *     start        reduce-scatter    allgather
 *     a0 b0 c0     X0 .  .           X0 X0 X0
 *     a1 b1 c1     .  X1 .           X1 X1 X1
 *     a2 b2 c2     .  .  X2          X2 X2 X2
 *
 * Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter
 * operations at scale", arXiv 2506.20252, 2025.
 */
#include "lib/algo/algo.h"

#include <stdlib.h>

/* Return the inner problem, without its counts. */
static struct coll__problem inner_of(const struct coll__problem *pb,
                                     enum coll_collective collective)
{
    struct coll__problem inner = *pb;

    inner.collective = collective;
    inner.op = pb->op == COLL_AVG ? COLL_SUM : pb->op;
    return inner;
}

static void scatter(const struct coll__problem *pb, struct coll__plan *plan,
                    struct coll__frame frame, const size_t *counts)
{
    struct coll__problem inner = inner_of(pb, COLL_REDUCE_SCATTERV);

    inner.count = counts[pb->rank];
    inner.in_counts = counts;
    inner.in_displs = counts + pb->nranks;
    inner.spoils_in = pb->in_place;
    coll__plan_nest(plan, coll__algo_find(inner.collective, "pat"), &inner,
                    &frame);
}

static void gather(const struct coll__problem *pb, struct coll__plan *plan,
                   struct coll__frame frame, const size_t *counts)
{
    struct coll__problem inner = inner_of(pb, COLL_ALLGATHERV);

    inner.count = counts[pb->rank];
    inner.out_counts = counts;
    inner.out_displs = counts + pb->nranks;
    inner.in_place = 1;
    coll__plan_nest(plan, coll__algo_find(inner.collective, "pat"), &inner,
                    &frame);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, *ranks = coll__plan_alloc(plan, p, sizeof(*ranks));
    size_t *counts = coll__plan_alloc(plan, 2 * p, sizeof(*counts));
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__span mine = coll__block(pb, BUF_OUT, pb->rank);

    for (int q = 0; q < p && ranks; q++)
        ranks[q] = q;
    if (ranks && counts) {
        coll__cut_counts(pb, out, p, p, counts);
        scatter(pb, plan, (struct coll__frame){ranks, coll__own_in(pb), mine},
                counts);
        plan_finish(pb, plan, mine);
        gather(pb, plan, (struct coll__frame){ranks, mine, out}, counts);
    }
    free(ranks);
    free(counts);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    struct coll__problem inner = inner_of(pb, COLL_REDUCE_SCATTER);
    double time;

    inner.type = COLL_U8; /* a block may be shorter than an element */
    inner.count = coll__problem_bytes(pb) / (size_t)pb->nranks;
    time = coll__algo_find(inner.collective, "pat")->cost(&inner);
    if (pb->nranks > 1) /* the result is sent while it is copied to OUT */
        time -= coll__cost_work(pb->view, (double)inner.count);
    inner.collective = COLL_ALLGATHER;
    return time + coll__algo_find(inner.collective, "pat")->cost(&inner);
}

const struct coll__algo coll__algo_allreduce_pat = {
    .name = "pat",
    .what = "PAT's reduce-scatter, then its allgather",
    .serves = COLL_FOR(ALLREDUCE),
    .build = build,
    .cost = cost,
};
