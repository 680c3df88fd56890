/* SPDX-License-Identifier: BSD-3-Clause */
/* k-nomial tree allreduce, radix 4: sums up the tree to rank 0, the result down
 * the same tree.
 *
 * T = 2 log4(p) (alpha + 2 gap + 3 n beta) + 3 log4(p) n gamma, p - 1 messages
 * each way.  Best for tiny n if a message's latency is well above the gap between
 * two messages, and if the number of messages counts.
 *
 *   p = 5      (0 1) 2 3 4     up:   1->0, then 2->0 3->0 4->0
 *                               down: 0->4 0->3 0->2, then 0->1
 *
 * Unless p is a power of two, the first ranks pair up before (algo.h).
 *
 * Source: the k-nomial trees of Chan et al., Concurr. Comput. Pract. Exp.
 * 19(13), 2007.
 */
#include "lib/algo/knomial.h"

/* Send the vector down to the children of an operand's node. */
static void spread(const struct coll__problem *pb, struct coll__plan *plan,
                   const struct coll__fold *f)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);
    int node = f->operand, d = coll__knomial_reach(node, f->m);

    for (d /= COLL__RADIX; d; d /= COLL__RADIX)
        for (int i = COLL__RADIX - 1; i > 0; i--)
            if (node + i * d < f->m)
                plan_send(plan, coll__fold_rank(f, node + i * d), out);
    if (node < f->e)
        plan_send(plan, pb->rank + 1, out);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__fold f = coll__fold_of(pb->nranks, pb->rank);
    int parent = pb->rank - 1;

    coll__knomial_reduce(pb, plan, 0, out);
    if (f.operand > 0)
        parent = coll__fold_rank(&f, coll__knomial_parent(f.operand, f.m));
    if (pb->rank == 0)
        plan_finish(pb, plan, out);
    else
        plan_recv(plan, parent, out);
    if (f.operand >= 0)
        spread(pb, plan, &f);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__knomial_up_cost(pb, 0) + coll__knomial_down_cost(pb);
}

const struct coll__algo coll__algo_allreduce_knomial = {
    .name = "knomial",
    .what = "up and down a tree of radix 4",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
