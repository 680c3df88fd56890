/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree allreduce: reduce up a binomial tree to rank 0, broadcast the
 * result down the same tree.
 *
 * T = 2 log2(p) (alpha + n beta) + log2(p) n gamma; p - 1 messages each way,
 * the fewest in all, which pays where ranks share cores or a slow link.
 *
 *   p = 5           0          up:   1->0 3->2, then 2->0, then 4->0
 *                 / | \        down: 0->4, then 0->2, then 0->1 2->3
 *                1  2  4
 *                   |
 *                   3
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank, bit = 1;

    if (!pb->in_place)
        plan_copy(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_IN));
    for (; bit < p && !(r & bit); bit *= 2) /* children, nearest first */
        if (r + bit < p) {
            plan_recv(plan, r + bit, coll__whole(pb, BUF_TMP));
            plan_reduce(plan, coll__whole(pb, BUF_OUT),
                        coll__whole(pb, BUF_TMP));
        }
    if (r == 0) {
        plan_finish(pb, plan, coll__whole(pb, BUF_OUT));
    } else {
        plan_send(plan, r - bit, coll__whole(pb, BUF_OUT));
        plan_recv(plan, r - bit, coll__whole(pb, BUF_OUT));
    }
    for (bit /= 2; bit; bit /= 2)
        if (r + bit < p)
            plan_send(plan, r + bit, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb, const struct coll__cost *c)
{
    double n = (double)coll__problem_bytes(pb);
    int up = log2_up(pb->nranks);

    return 2 * up * (c->alpha + n * c->beta) + up * n * c->gamma;
}

const struct coll__algo coll__algo_allreduce_binomial = {
    .name = "binomial",
    .what = "reduce up a binomial tree, broadcast down it",
    .collective = COLL_ALLREDUCE,
    .build = build,
    .cost = cost,
};
