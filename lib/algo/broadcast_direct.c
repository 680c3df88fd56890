/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct broadcast: the root sends its vector to every rank.
 *
 * T = alpha + (p-2) gap + (p-1) n beta.  Best for tiny n, and for ranks that share
 * memory: one copy of the bytes serves all, so the last term is n beta.
 *
 *   p = 4, root 0      0->1 0->2 0->3
 *
 * Source: Chan et al., Concurr. Comput. Pract. Exp. 19(13), 2007 (the linear
 * form).
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__span out = coll__whole(pb, BUF_OUT);

    if (r != pb->root) {
        plan_recv(plan, pb->root, out);
        return plan_status(plan);
    }
    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, coll__own_in(pb));
    plan_copy(plan, out, coll__own_in(pb));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__cost_fan_same(pb->view, pb->root,
                               (double)coll__problem_bytes(pb));
}

const struct coll__algo coll__algo_broadcast_direct = {
    .name = "direct",
    .what = "whole vector from the root to every rank",
    .serves = COLL_FOR(BROADCAST),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
