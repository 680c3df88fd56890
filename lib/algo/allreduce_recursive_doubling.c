/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling allreduce: exchange whole vectors with partners at
 * distance 1, 2, 4, ...; after k rounds groups of 2^k ranks hold equal sums.
 *
 * T = log2(p) (alpha + n beta + n gamma).  Best for small n.  Unless p is
 * a power of two, let m be the largest one below p.  The first 2 (p - m) ranks pair
 * up: the upper rank of a pair sends its vector to the lower rank and receives the
 * result at the end, which adds 2 (alpha + n beta) + n gamma.
 *
 *   p = 5, m = 4      fold        round 0       round 1       unfold
 *     0: a            a+b         a+b c         A             A
 *     1: b            -           -             -             A
 *     2: c            c           a+b c         A             A
 *     3: d            d           d e           A             A
 *     4: e            e           d e           A             A
 *
 * Each pair adds the same two vectors, and addition commutes bit for bit, so
 * all ranks end with equal bits.
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/halves.h"
#include "lib/plan/doubling.h"
#include "lib/plan/view_rounds.h"

/* Exchange vectors with the holder of another operand; the lower operand stays on the
 * left. */
static void exchange(const struct coll__problem *pb, struct coll__plan *plan,
                     int peer)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__span tmp = coll__whole(pb, BUF_TMP);

    plan_send(plan, peer, out);
    plan_recv(plan, peer, tmp);
    if (peer < pb->rank)
        plan_reduce_left(plan, out, tmp);
    else
        plan_reduce(plan, out, tmp);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__fold f = coll__fold_of(pb->nranks, pb->rank);
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__span tmp = coll__whole(pb, BUF_TMP);

    plan_copy(plan, out, coll__own_in(pb));
    if (f.operand < 0) {
        plan_send(plan, pb->rank - 1, out);
        plan_recv(plan, pb->rank - 1, out);
        return plan_status(plan);
    }
    if (f.operand < f.e) {
        plan_recv(plan, pb->rank + 1, tmp);
        plan_reduce(plan, out, tmp);
    }
    for (int distance = 1; distance < f.m; distance *= 2)
        exchange(pb, plan, coll__fold_rank(&f, f.operand ^ distance));
    plan_finish(pb, plan, out);
    if (f.operand < f.e)
        plan_send(plan, pb->rank + 1, out);
    return plan_status(plan);
}

/* The fold, log2(m) exchanges, the unfold. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    struct coll__fold f = coll__fold_of(pb->nranks, rank);
    int last = log2_up(f.m) + 1;

    message->n_blocks = 1;
    message->n = (double)coll__problem_bytes(pb);
    message->n_works = round < last;
    message->to = rank - 1;
    if (f.operand < 0 || round == 0)
        return f.operand < 0 && round == 0;
    message->to = rank + 1;
    if (round == last)
        return f.operand < f.e;
    message->to = coll__fold_rank(&f, f.operand ^ 1 << (round - 1));
    return 1;
}

/* Return the time of a message and its reduction, piece by piece. */
static double absorbed(const struct coll__view *view, double come, double n)
{
    return coll__cost_absorb(coll__pieces(view, n), come,
                             coll__cost_work(view, n));
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb);
    int m = power2_below(pb->nranks), is_odd = (pb->nranks - m) % 2;
    double pair = coll__cost_exchange(view, 1, n);
    double work = coll__cost_work(view, n);
    double time = pair + absorbed(view, pair, n);
    struct coll__doubling doubling = {.fold = absorbed(view, pair, n),
                                      .unfold = pair,
                                      .work = work,
                                      .held = view->levels[0].overhead};
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(m) + 2,
                                  .n_blocks = 1,
                                  .block = n,
                                  .is_held = 1,
                                  .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int d = 1, k = 0; d < m; d *= 2, k++) {
        double round = absorbed(view, coll__halves_exchange(pb, d, n), n);

        doubling.round[k] = round - work; /* the rest of the round */
        time += round;
    }
    if (n <= COLL__EAGER || m == pb->nranks)
        return coll__doubling_cost(pb->nranks, &doubling);
    /* the lower rank of the last pair receives two messages at once */
    return is_odd ? time + coll__cost_next(view, n) : time;
}

const struct coll__algo coll__algo_allreduce_recursive_doubling = {
    .name = "recursive_doubling",
    .what = "whole vectors to partners at distance 1, 2, 4, ...",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
