/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct barrier: tell every rank, hear from every rank.
 *
 * T = alpha + (p-2) gap: one step.  Best for few ranks, and if ranks share cores:
 * each has to run only once.
 *
 *   p = 3      0->1 0->2      1->2 1->0      2->0 2->1
 *
 * Source: the flat exchange of Nishtala and Yelick, Optimizing collective
 * communication on multicores, HotPar 2009.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    plan_copy(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_IN));
    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, coll__whole(pb, BUF_IN));
    for (int d = 1; d < p; d++) {
        plan_recv(plan, (r - d + p) % p, coll__whole(pb, BUF_TMP));
        plan_reduce(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_TMP));
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__cost_all(pb->view, 1);
}

const struct coll__algo coll__algo_barrier_direct = {
    .name = "direct",
    .what = "tell every rank, hear from every rank, one step",
    .serves = COLL_FOR(BARRIER),
    .build = build,
    .cost = cost,
};
