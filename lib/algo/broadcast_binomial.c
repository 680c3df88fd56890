/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree broadcast: in each round every rank that has the vector sends it
 * to one that does not.
 *
 * T = log2(p) (alpha + n beta).  Best for small n.
 *
 *   p = 5, ranks counted from the root     round 0: 0->4
 *                 0                        round 1: 0->2
 *               / | \                      round 2: 0->1 2->3
 *              1  2  4
 *                 |
 *                 3
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_tree.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, v = (pb->rank - pb->root + p) % p, bit = 1;
    struct coll__span out = coll__whole(pb, BUF_OUT), from = out;

    while (bit < p && !(v & bit))
        bit *= 2;
    if (v)
        plan_recv(plan, (pb->rank - bit + p) % p, out);
    else if (!pb->in_place)
        from = coll__whole(pb, BUF_IN);
    for (int child = bit / 2; child; child /= 2)
        if (v + child < p)
            plan_send(plan, (pb->rank + child) % p, from);
    if (from.buf == BUF_IN)
        plan_copy(plan, out, from);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    struct coll__tree_shape shape = {.radix = 2, .root = pb->root};

    return coll__binomial_tree_cost(pb->view, &shape, TREE_DOWN,
                                    (double)coll__problem_bytes(pb));
}

const struct coll__algo coll__algo_broadcast_binomial = {
    .name = "binomial",
    .what = "whole vector down a binomial tree",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
};
