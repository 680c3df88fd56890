/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct allgather: every rank sends its block to every other, all at once.
 *
 * With n bytes from each rank, T = alpha + (p - 1) (gap + n beta): one latency,
 * and every byte goes straight to its place.  Best for few ranks with a link
 * between any two of them, as within a host.
 *
 *   p = 3, one column a rank
 *     start      the one round
 *     a . .      a a a
 *     . b .      b b b        0: to 1, 2    1: to 2, 0    2: to 0, 1
 *     . . c      c c c
 *
 * Source: Chan, Heimlich, Purkayastha and van de Geijn, Concurrency Computat.:
 * Pract. Exper. 19(13), 2007.
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    for (int s = 1; s < p; s++)
        plan_send(plan, (r + s) % p, coll__own_in(pb));
    plan_copy(plan, coll__part(pb, BUF_OUT, r), coll__own_in(pb));
    for (int s = 1; s < p; s++)
        plan_recv(plan, (r - s + p) % p, coll__part(pb, BUF_OUT, r - s));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__cost_all_same(pb->view, coll__mean_part(pb, BUF_OUT));
}

const struct coll__algo coll__algo_allgather_direct = {
    .name = "direct",
    .what = "each block straight to every rank",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
