/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct alltoall: all messages at once; each rank sends to the next rank first.
 *
 * With n bytes for each rank, T = alpha + (p - 1) (gap + n beta), if the
 * network is not congested.  Sending to rank r + 1 first spreads the messages: at
 * any time about one message is on its way to each rank.
 *
 *   p = 4: the order in which each rank's messages leave
 *     0: 1 2 3      1: 2 3 0      2: 3 0 1      3: 0 1 2
 *
 * In place all blocks are saved in scratch first, which adds p n gamma.
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    enum coll__buf from = pb->in_place ? BUF_TMP : BUF_IN;

    if (pb->in_place && p > 1)
        plan_copy(plan, coll__parts(pb, BUF_TMP, 0, p),
                  coll__parts(pb, BUF_OUT, 0, p));
    for (int s = 1; s < p; s++)
        plan_send(plan, (r + s) % p, coll__part(pb, from, r + s));
    plan_copy(plan, coll__part(pb, BUF_OUT, r), coll__own_in(pb));
    for (int s = 1; s < p; s++)
        plan_recv(plan, (r - s + p) % p, coll__part(pb, BUF_OUT, r - s));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__cost_all(pb->view, coll__mean_part(pb, BUF_OUT));
}

const struct coll__algo coll__algo_alltoall_direct = {
    .name = "direct",
    .what = "all blocks at once, the next rank's first",
    .serves = COLL_FOR(ALLTOALL) | COLL_FOR(ALLTOALLV),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
