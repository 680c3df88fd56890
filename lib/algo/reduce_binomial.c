/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree reduce: in round k each rank whose bit k is set sends its sum to
 * the rank without that bit, and is done.
 *
 * T = log2(p) (alpha + n beta + n gamma), p - 1 messages; best for small n.
 * The tree is the canonical one (algo.h), whose top is rank 0.  If rank 0 is not the
 * root, the result takes one more message.  If any order will do, ranks are counted
 * from the root, which saves that message.
 *
 *   p = 5      (0 1)    2      3    4      1->0, then 2->0 4->3, then 3->0
 *                 \    /        \  /
 *                   0 --------- 3
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/combine.h"
#include "lib/plan/view_tree.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, is_root = pb->rank == pb->root, bit = 1;
    int top = pb->order == ORDER_FREE ? pb->root : 0;
    struct coll__fold f = coll__fold_of(p, (pb->rank - top + p) % p);
    struct coll__span own = coll__own_in(pb);
    struct coll__span sum = coll__whole(pb, is_root ? BUF_OUT : BUF_TMP);
    struct coll__span tmp = coll__scratch(sum, is_root ? 0 : sum.len);

    if (f.operand >= 0 && f.operand < f.e) {
        plan_absorb(plan, (pb->rank + 1) % p, sum, own, tmp);
        own = sum;
    }
    for (; f.operand >= 0 && bit < f.m && !(f.operand & bit); bit *= 2) {
        int child = coll__fold_rank(&f, f.operand + bit);

        plan_absorb(plan, (top + child) % p, sum, own, tmp);
        own = sum;
    }
    if (f.operand > 0)
        plan_send(plan, (top + coll__fold_rank(&f, f.operand - bit)) % p, own);
    else if (f.operand < 0)
        plan_send(plan, (pb->rank - 1 + p) % p, own);
    if (pb->rank == top && !is_root)
        plan_send(plan, pb->root, own);
    else if (is_root && pb->rank != top)
        plan_recv(plan, top, sum);
    else if (is_root)
        plan_copy(plan, sum, own); /* if there is one rank */
    if (is_root)
        plan_finish(pb, plan, sum);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb);
    int top = pb->order == ORDER_FREE ? pb->root : 0;
    struct coll__tree_shape shape = {.radix = 2, .root = top, .is_folded = 1};
    double time = coll__binomial_tree_cost(pb->view, &shape, TREE_REDUCE, n);

    if (pb->order != ORDER_FREE && pb->root)
        time += coll__cost_message(pb->view, pb->nranks, n);
    return time;
}

const struct coll__algo coll__algo_reduce_binomial = {
    .name = "binomial",
    .what = "sums up a binomial tree",
    .serves = COLL_FOR(REDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
