/* SPDX-License-Identifier: BSD-3-Clause */
/* Rabenseifner's reduce: a reduce-scatter by recursive halving, then a gather
 * to the root up a binomial tree.
 *
 * T = 2 log2(p) alpha + 2(p-1)/p n beta + (p-1)/p n gamma; best for large n.
 * Unless p is a power of two, the first ranks fold in pairs, which adds
 * alpha + n beta + n gamma; if the root is one of them, it is the rank of its pair that
 * continues.
 *
 *   p = 4, root 1, blocks of a rank from left to right, X = sum over all ranks
 *     rank  start    distance 1   distance 2   distance 2   distance 1
 *     0     a a a a  ab ab .  .   X  .  .  .   X X . .      .
 *     1     b b b b  .  .  ab ab  .  .  X  .   . . X X      X X X X
 *     2     c c c c  cd cd .  .   .  X  .  .   .            .
 *     3     d d d d  .  .  cd cd  .  .  .  X   .            .
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005; here neighbours exchange first, for the canonical tree.
 */
#include "lib/algo/halves.h"
#include "lib/plan/view_rounds.h"

/* Return the operand that the root holds. */
static int root_operand(const struct coll__problem *pb,
                        const struct coll__halves *h)
{
    return pb->root < 2 * h->fold.e ? pb->root / 2 : pb->root - h->fold.e;
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    enum coll__buf buf = pb->rank == pb->root ? BUF_OUT : BUF_TMP;
    struct coll__halves h;
    int away; /* bits in which this operand's number differs from the root's */

    coll__halves_reduce(pb, plan, coll__whole(pb, buf), pb->root, &h);
    if (h.fold.operand < 0)
        return plan_status(plan);
    away = h.fold.operand ^ root_operand(pb, &h);
    plan_finish(pb, plan, coll__halves_own(pb, &h));
    for (int d = h.fold.m / 2; d; d /= 2) {
        int peer = coll__halves_rank(&h, h.fold.operand ^ d);

        if (away & d) {
            plan_send(plan, peer, coll__halves_own(pb, &h));
            break;
        }
        plan_recv(plan, peer, coll__halves_other(pb, &h, d));
        coll__halves_join(&h, d);
    }
    return plan_status(plan);
}

/* The fold, k rounds of halving, k rounds of the gather. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    struct coll__halves h;
    int k = log2_up(power2_below(pb->nranks));
    int back = 2 * k + 1 - round, away;

    if (round <= k)
        return coll__halves_send(pb, round, rank, message, &h);
    if (!coll__halves_send_back(pb, back, rank, message, &h))
        return 0;
    away = h.fold.operand ^ root_operand(pb, &h);
    return away >> (back - 1) == 1;
}

static double cost(const struct coll__problem *pb)
{
    struct coll__rounds rounds = {
        .pb = pb,
        .n = 2 * log2_up(power2_below(pb->nranks)) + 1,
        .n_blocks = power2_below(pb->nranks),
        .block = (double)coll__problem_bytes(pb) / power2_below(pb->nranks),
        .send = send_in};
    struct coll__halves h = {.fold = coll__fold_of(pb->nranks, pb->root)};
    double n = (double)coll__problem_bytes(pb), time;
    int m = h.fold.m, root = root_operand(pb, &h);

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    time = coll__halves_cost(pb);
    for (int d = 1; d < m; d *= 2) /* fewer elements: the first blocks */
        if (root & d || (size_t)(m / (2 * d)) < pb->count)
            time +=
                coll__cost_tree(pb->view, coll__halves_far(pb, d), n / (2 * d));
    return time;
}

const struct coll__algo coll__algo_reduce_rabenseifner = {
    .name = "rabenseifner",
    .what = "recursive halving, then gather to the root",
    .serves = COLL_FOR(REDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
