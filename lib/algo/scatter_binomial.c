/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree scatter: each rank receives its subtree's blocks in one message and
 * sends them down, the largest subtree's first.
 *
 * With n bytes for each rank, T = log2(p) alpha + (p - 1) n beta: as many bytes
 * out of the root as a direct scatter, in log2(p) messages.  Best for small n.
 * A subtree is a run of ranks counted from the root, so its blocks are packed,
 * except the one run that wraps after the last rank, which goes through scratch.
 *
 *   p = 5, ranks counted from the root     0->4: 4
 *                 0                        0->2: 2 3
 *               / | \                      0->1: 1      2->3: 3
 *              1  2  4
 *                 |
 *                 3
 *
 * Only the root of a scatterv knows the counts, so scatterv is not served.
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

/* On the root, send n blocks to the rank that is `child` after it. */
static void give(const struct coll__problem *pb, struct coll__plan *plan,
                 int child, int n)
{
    int p = pb->nranks, first = (pb->rank + child) % p;

    if (first + n <= p) {
        plan_send(plan, first, coll__parts(pb, BUF_IN, first, n));
        return;
    }
    coll__plan_pack(pb, plan, held(pb, 0, n), first, n);
    plan_send(plan, first, held(pb, 0, n));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, v = (pb->rank - pb->root + p) % p;
    int n = coll__subtree(p, v);
    struct coll__span out = coll__whole(pb, BUF_OUT), own = held(pb, 0, 1);

    if (!v)
        own = coll__own_in(pb);
    else if (n == 1)
        own = out;
    if (v)
        plan_recv(plan, (pb->rank - (v & -v) + p) % p,
                  n > 1 ? held(pb, 0, n) : out);
    for (int child = 1 << log2_up(n) >> 1; child; child /= 2) {
        int under = coll__subtree(n, child);

        if (v)
            plan_send(plan, (pb->rank + child) % p, held(pb, child, under));
        else
            give(pb, plan, child, under);
    }
    plan_copy(plan, out, own);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    struct coll__tree_shape shape = {.radix = 2, .root = pb->root};

    return coll__binomial_tree_cost(pb->view, &shape, TREE_SCATTER,
                                    coll__mean_part(pb, BUF_IN));
}

const struct coll__algo coll__algo_scatter_binomial = {
    .name = "binomial",
    .what = "whole subtrees' blocks down a binomial tree",
    .serves = COLL_FOR(SCATTER),
    .build = build,
    .cost = cost,
};
