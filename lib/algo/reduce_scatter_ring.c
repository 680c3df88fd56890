/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring reduce-scatter: the sum of each part goes once round the ring, growing
 * by one operand a step, and ends at the part's rank.
 *
 * With n bytes a part, T = (p-1) (alpha + n beta + n gamma), or, in many
 * pieces, (p-1) n max(beta, gamma): the least bytes, only between neighbours.
 * Best for large n.
 *
 *   p = 3, rank r's operand of part q is rq
 *     step 0: 0-02->1  1-10->2  2-21->0
 *     step 1: 0-01+21->1  1-12+02->2  2-20+10->0, and each adds its own
 *
 * Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
 */
#include "lib/algo/combine.h"

/* Return the place for the sum of a part in step s: one of two places in scratch in
 * turn, or the place of this rank's operand if IN may be overwritten. */
static struct coll__span place(const struct coll__problem *pb, int part, int s,
                               size_t slot)
{
    struct coll__span in = coll__part(pb, BUF_IN, part);

    if (part == pb->rank)
        return coll__whole(pb, BUF_OUT);
    return pb->spoils_in ? in : coll__scratch(in, (size_t)(s % 2) * slot);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    const struct coll__view *view = pb->view;
    int p = pb->nranks, v = coll__ring_place(view, pb->rank);
    int left = coll__ring_at(view, p, v - 1);
    int right = coll__ring_at(view, p, v + 1);
    size_t slot = pb->spoils_in ? 0 : coll__longest_part(pb, BUF_IN);
    struct coll__span sum = coll__part(pb, BUF_IN, left);

    for (int s = 0; s < p - 1; s++) {
        int part = coll__ring_at(view, p, v - s - 2);
        struct coll__span own = part == pb->rank ? coll__own_in(pb)
                                                 : coll__part(pb, BUF_IN, part);

        plan_send(plan, right, sum);
        sum = place(pb, part, s, slot);
        plan_absorb(plan, left, sum, own,
                    coll__scratch(sum, (size_t)(s % 2) * slot));
    }
    if (p == 1)
        plan_copy(plan, coll__whole(pb, BUF_OUT), coll__own_in(pb));
    plan_finish(pb, plan, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

/* The first piece of a part must be received and reduced before it is passed on; the
 * other pieces follow as fast as links and processors allow. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = coll__mean_part(pb, BUF_IN), k = coll__pieces(view, n);
    double work = coll__cost_work(view, n / k);
    double first = coll__cost_ring(view, n / k) + work;
    double next = coll__cost_ring_next(view, n / k);
    double step = first;

    if (pb->nranks < 2)
        return 0;
    if (work > next)
        next = work;
    if (k > 1 && k * next > step)
        step = k * next;
    return (pb->nranks - 2) * step + first + (k - 1) * next;
}

const struct coll__algo coll__algo_reduce_scatter_ring = {
    .name = "ring",
    .what = "each part's sum once round the ring, p-1 steps",
    .serves = COLL_FOR(REDUCE_SCATTER) | COLL_FOR(REDUCE_SCATTERV),
    .goes_apart = 1,
    .build = build,
    .cost = cost,
};
