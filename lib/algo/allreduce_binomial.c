/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree allreduce: reduce up a binomial tree to rank 0, broadcast the
 * result down the same tree.
 *
 * T = 2 log2(p) (alpha + n beta) + log2(p) n gamma; p - 1 messages each way,
 * the fewest in all: best if ranks share cores or a slow link.  The tree is the
 * canonical one (algo.h): unless p is a power of two, the first ranks pair up before.
 *
 *   p = 5      (0 1)    2      3    4      up:   1->0, then 2->0 4->3, then 3->0
 *                 \    /        \  /       down: 0->3, then 0->2 3->4, then 0->1
 *                   0 --------- 3
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_tree.h"

static void absorb(const struct coll__problem *pb, struct coll__plan *plan,
                   int peer)
{
    plan_recv(plan, peer, coll__whole(pb, BUF_TMP));
    plan_reduce(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_TMP));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__fold f = coll__fold_of(pb->nranks, pb->rank);
    struct coll__span out = coll__whole(pb, BUF_OUT);
    int bit = 1, has_pair = f.operand >= 0 && f.operand < f.e;
    int up = pb->rank - 1;

    plan_copy(plan, out, coll__own_in(pb));
    if (has_pair)
        absorb(pb, plan, pb->rank + 1);
    for (; f.operand >= 0 && bit < f.m && !(f.operand & bit); bit *= 2)
        absorb(pb, plan, coll__fold_rank(&f, f.operand + bit));
    if (f.operand > 0)
        up = coll__fold_rank(&f, f.operand - bit);
    if (pb->rank == 0) {
        plan_finish(pb, plan, out);
    } else {
        plan_send(plan, up, out);
        plan_recv(plan, up, out);
    }
    for (bit /= 2; f.operand >= 0 && bit; bit /= 2)
        plan_send(plan, coll__fold_rank(&f, f.operand + bit), out);
    if (has_pair)
        plan_send(plan, pb->rank + 1, out);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb);
    struct coll__tree_shape shape = {.radix = 2, .is_folded = 1};

    return coll__binomial_tree_cost(pb->view, &shape, TREE_REDUCE, n) +
           coll__binomial_tree_cost(pb->view, &shape, TREE_DOWN, n);
}

const struct coll__algo coll__algo_allreduce_binomial = {
    .name = "binomial",
    .what = "reduce up a binomial tree, broadcast down it",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
