/* SPDX-License-Identifier: BSD-3-Clause */
/* Rabenseifner's allreduce: a reduce-scatter by recursive halving, then an
 * allgather by recursive doubling, the same way back.
 *
 * T = 2 log2(p) alpha + 2(p-1)/p n beta + (p-1)/p n gamma: the least bytes, in
 * few messages.  Best for medium and large n.  Unless p is a power of two, the
 * first ranks fold in pairs, which adds 2 (alpha + n beta) + n gamma.
 *
 *   p = 4, blocks of a rank from left to right, X = sum over all ranks
 *     rank  start    distance 1   distance 2   distance 2   distance 1
 *     0     a a a a  ab ab .  .   X  .  .  .   X X . .      X X X X
 *     1     b b b b  .  .  ab ab  .  .  X  .   . . X X      X X X X
 *     2     c c c c  cd cd .  .   .  X  .  .   X X . .      X X X X
 *     3     d d d d  .  .  cd cd  .  .  .  X   . . X X      X X X X
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005; here neighbours exchange first, for the canonical tree.
 */
#include "lib/algo/halves.h"
#include "lib/plan/view_rounds.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__halves h;

    coll__halves_reduce(pb, plan, out, -1, &h);
    if (h.fold.operand < 0) {
        plan_recv(plan, pb->rank - 1, out);
        return plan_status(plan);
    }
    plan_finish(pb, plan, coll__halves_own(pb, &h));
    for (int d = h.fold.m / 2; d; d /= 2) {
        int peer = coll__halves_rank(&h, h.fold.operand ^ d);

        plan_send(plan, peer, coll__halves_own(pb, &h));
        plan_recv(plan, peer, coll__halves_other(pb, &h, d));
        coll__halves_join(&h, d);
    }
    if (h.fold.operand < h.fold.e)
        plan_send(plan, pb->rank + 1, out);
    return plan_status(plan);
}

/* The fold, k rounds of halving, k of doubling, the unfold. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    struct coll__halves h;
    int k = log2_up(power2_below(pb->nranks));
    int back = 2 * k + 1 - round; /* the same round of the halving */

    if (round <= k)
        return coll__halves_send(pb, round, rank, message, &h);
    if (!coll__halves_send_back(pb, back, rank, message, &h))
        return 0;
    message->to = back ? message->to : rank + 1;
    return back || h.fold.operand < h.fold.e;
}

static double cost(const struct coll__problem *pb)
{
    struct coll__rounds rounds = {
        .pb = pb,
        .n = 2 * log2_up(power2_below(pb->nranks)) + 2,
        .n_blocks = power2_below(pb->nranks),
        .block = (double)coll__problem_bytes(pb) / power2_below(pb->nranks),
        .send = send_in};
    double n = (double)coll__problem_bytes(pb);
    int m = power2_below(pb->nranks);
    double time;

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    time = coll__halves_cost(pb);
    for (int d = 1; d < m; d *= 2)
        time += coll__halves_exchange(pb, d, n / (2 * d));
    return time + (m < pb->nranks ? coll__cost_exchange(pb->view, 1, n) : 0);
}

const struct coll__algo coll__algo_allreduce_rabenseifner = {
    .name = "rabenseifner",
    .what = "recursive halving, then recursive doubling",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
