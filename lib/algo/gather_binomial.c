/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree gather: each rank collects its subtree's blocks and sends them
 * on in one message.
 *
 * With n bytes from each rank, T = log2(p) alpha + (p - 1) n beta: as many
 * bytes into the root as a direct gather, in log2(p) messages.  Best for small
 * n.  A subtree is a run of ranks counted from the root, so its blocks are
 * packed.  At the root they go straight to their places, except the one run that
 * wraps after the last rank, which goes through scratch.
 *
 *   p = 5, ranks counted from the root     1->0: 1      3->2: 3
 *                 0                        2->0: 2 3
 *               / | \                      4->0: 4
 *              1  2  4
 *                 |
 *                 3
 *
 * Only the root of a gatherv knows the counts, so gatherv is not served.
 *
 * Source: Chan, Heimlich, Purkayastha and van de Geijn, Concurrency Computat.:
 * Pract. Exper. 19(13), 2007.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_tree.h"

/* Return n blocks in scratch, from block i on. */
static struct coll__span held(const struct coll__problem *pb, int i, int n)
{
    return coll__parts(pb, BUF_TMP, i, n);
}

/* On the root, receive n blocks from the rank that is `child` after it. */
static void take_in(const struct coll__problem *pb, struct coll__plan *plan,
                    int child, int n)
{
    int p = pb->nranks, first = (pb->rank + child) % p;

    if (first + n <= p) {
        plan_recv(plan, first, coll__parts(pb, BUF_OUT, first, n));
        return;
    }
    plan_recv(plan, first, held(pb, 0, n));
    coll__plan_unpack(pb, plan, first, n, held(pb, 0, n));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, v = (pb->rank - pb->root + p) % p;
    int n = coll__subtree(p, v);
    struct coll__span own = held(pb, 0, 1);

    if (!v)
        own = coll__part(pb, BUF_OUT, pb->rank);
    else if (n == 1)
        own = coll__own_in(pb);
    plan_copy(plan, own, coll__own_in(pb));
    for (int child = 1; child < n; child *= 2) {
        int under = coll__subtree(n, child);

        if (v)
            plan_recv(plan, (pb->rank + child) % p, held(pb, child, under));
        else
            take_in(pb, plan, child, under);
    }
    if (v)
        plan_send(plan, (pb->rank - (v & -v) + p) % p,
                  n > 1 ? held(pb, 0, n) : own);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    struct coll__tree_shape shape = {.radix = 2, .root = pb->root};

    return coll__binomial_tree_cost(pb->view, &shape, TREE_GATHER,
                                    coll__mean_part(pb, BUF_OUT));
}

const struct coll__algo coll__algo_gather_binomial = {
    .name = "binomial",
    .what = "whole subtrees' blocks up a binomial tree",
    .serves = COLL_FOR(GATHER),
    .build = build,
    .cost = cost,
};
