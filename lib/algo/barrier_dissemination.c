/* SPDX-License-Identifier: BSD-3-Clause */
/* Dissemination barrier: in round k tell rank r + 2^k, hear from r - 2^k; after
 * ceil(log2 p) rounds every rank has heard from every rank, directly or not.
 *
 * T = ceil(log2 p) alpha, for any p.  The token is one byte, combined by max, so it
 * does no harm to hear of a rank twice.
 *
 *   p = 5: the ranks that rank 0 has heard of
 *     round 0: 0 4        round 1: 0 4 3 2        round 2: 0 4 3 2 1
 *
 * Source: Hensgen, Finkel and Manber, Int. J. Parallel Program. 17(1), 1988.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    plan_copy(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_IN));
    for (int distance = 1; distance < p; distance *= 2) {
        plan_send(plan, (r + distance) % p, coll__whole(pb, BUF_OUT));
        plan_recv(plan, (r - distance + p) % p, coll__whole(pb, BUF_TMP));
        plan_reduce(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_TMP));
    }
    return plan_status(plan);
}

static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    message->to = (rank + (1 << round)) % pb->nranks;
    message->n_blocks = 1;
    message->n = 1;
    message->n_works = 1;
    return 1;
}

static double cost(const struct coll__problem *pb)
{
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(pb->nranks),
                                  .n_blocks = 1,
                                  .block = 1,
                                  .is_held = 1,
                                  .send = send_in};
    double time = 0;

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int d = 1; d < pb->nranks; d *= 2)
        time += coll__cost_shift(pb->view, d, 1);
    return time;
}

const struct coll__algo coll__algo_barrier_dissemination = {
    .name = "dissemination",
    .what = "tell r + 2^k, hear from r - 2^k, log2(p) rounds",
    .serves = COLL_FOR(BARRIER),
    .build = build,
    .cost = cost,
};
