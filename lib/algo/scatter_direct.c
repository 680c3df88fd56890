/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct scatter: the root sends every rank its part.
 *
 * With n bytes for each rank, T = alpha + (p - 1) (gap + n beta): the least
 * bytes, and each goes straight to its place.  Best for large n, or few ranks.
 *
 *   p = 4, root 1          1
 *                       /  |  \
 *                      2   3   0       2's part leaves first
 *
 * Source: Chan, Heimlich, Purkayastha and van de Geijn, Concurrency Computat.:
 * Pract. Exper. 19(13), 2007.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, root = pb->root;

    if (pb->rank != root) {
        plan_recv(plan, root, coll__whole(pb, BUF_OUT));
        return plan_status(plan);
    }
    for (int s = 1; s < p; s++)
        plan_send(plan, (root + s) % p, coll__part(pb, BUF_IN, root + s));
    plan_copy(plan, coll__whole(pb, BUF_OUT), coll__own_in(pb));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = coll__mean_part(pb, BUF_IN);

    return coll__cost_fan_all(pb->view, pb->root, n);
}

const struct coll__algo coll__algo_scatter_direct = {
    .name = "direct",
    .what = "every part straight from the root",
    .serves = COLL_FOR(SCATTER) | COLL_FOR(SCATTERV),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
