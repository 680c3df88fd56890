/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling allreduce: exchange whole vectors with partners at
 * distance 1, 2, 4, ...; after k rounds groups of 2^k ranks hold equal sums.
 *
 * T = log2(p) (alpha + n beta + n gamma).  Best for small n.  When p is no
 * power of two, let m be the largest one below p: each of the p - m ranks from
 * m on first gives its vector to rank - m and gets the result at the end, which
 * adds 2 (alpha + n beta) + n gamma.
 *
 *   p = 5, m = 4      fold        round 0       round 1       unfold
 *     0: a            a+e         a+e b         A             A
 *     1: b            b           a+e b         A             A
 *     2: c            c           c d           A             A
 *     3: d            d           c d           A             A
 *     4: e            -           -             -             A
 *
 * Each pair adds the same two vectors, and addition commutes bit for bit, so
 * all ranks end with equal bits.
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"

static void exchange(const struct coll__problem *pb, struct coll__plan *plan,
                     int peer)
{
    plan_send(plan, peer, coll__whole(pb, BUF_OUT));
    plan_recv(plan, peer, coll__whole(pb, BUF_TMP));
    plan_reduce(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_TMP));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank, m = 1;

    while (2 * m <= p)
        m *= 2;
    if (!pb->in_place)
        plan_copy(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_IN));
    if (r >= m) {
        plan_send(plan, r - m, coll__whole(pb, BUF_OUT));
        plan_recv(plan, r - m, coll__whole(pb, BUF_OUT));
        return plan_status(plan);
    }
    if (r + m < p) {
        plan_recv(plan, r + m, coll__whole(pb, BUF_TMP));
        plan_reduce(plan, coll__whole(pb, BUF_OUT), coll__whole(pb, BUF_TMP));
    }
    for (int distance = 1; distance < m; distance *= 2)
        exchange(pb, plan, r ^ distance);
    plan_finish(pb, plan, coll__whole(pb, BUF_OUT));
    if (r + m < p)
        plan_send(plan, r + m, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb, const struct coll__cost *c)
{
    double n = (double)coll__problem_bytes(pb);
    int up = log2_up(pb->nranks);
    int is_power = 1 << up == pb->nranks;
    double round = c->alpha + n * (c->beta + c->gamma);

    return is_power ? up * round
                    : (up - 1) * round + 2 * (c->alpha + n * c->beta) +
                          n * c->gamma;
}

const struct coll__algo coll__algo_allreduce_recursive_doubling = {
    .name = "recursive_doubling",
    .what = "whole vectors to partners at distance 1, 2, 4, ...",
    .collective = COLL_ALLREDUCE,
    .build = build,
    .cost = cost,
};
