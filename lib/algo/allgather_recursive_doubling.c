/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling allgather: exchange all blocks held with partners at
 * distance 1, 2, 4, ...
 *
 * With n bytes from each rank, T = log2(p) alpha + (p - 1) n beta.  A rank always
 * holds the blocks of consecutive ranks, so equal blocks need no copies.  Best for
 * small to medium n.  Unless p is a power of two, the first ranks pair up as in
 * algo.h: the upper rank of a pair sends its block to the lower rank and receives
 * the whole result at the end, which adds 2 alpha + (p + 1) n beta.
 *
 *   p = 5, one column a rank
 *     start        fold         round 0      round 1      unfold
 *     a . . . .    a a . . .    a . a . .    a . a a a    a a a a a
 *     . b . . .    b b . . .    b b b . .    b b b b b    b b b b b
 *     . . c . .    . . c . .    c . c . .    c . c c c    c c c c c
 *     . . . d .    . . . d .    . . . d d    d . d d d    d d d d d
 *     . . . . e    . . . . e    . . . e e    e . e e e    e e e e e
 *
 * Parts of different lengths are packed in scratch on the way, since there may be
 * gaps between them, which may differ between ranks.
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/halves.h"
#include "lib/plan/doubling.h"
#include "lib/plan/view_rounds.h"

/* Return where the blocks of ranks [from, to) are collected. */
static struct coll__span held(const struct coll__problem *pb, int from, int to)
{
    if (!pb->out_counts)
        return coll__parts(pb, BUF_OUT, from, to - from);
    return (struct coll__span){BUF_TMP, coll__parts_len(pb, BUF_OUT, 0, from),
                               coll__parts_len(pb, BUF_OUT, from, to - from)};
}

/* Return the blocks that the holders of operands [from, from + n) have. */
static struct coll__span operands(const struct coll__problem *pb,
                                  const struct coll__fold *f, int from, int n)
{
    return held(pb, coll__fold_rank(f, from), coll__fold_rank(f, from + n));
}

static void exchange_all(const struct coll__problem *pb,
                         struct coll__plan *plan, const struct coll__fold *f)
{
    for (int d = 1; d < f->m; d *= 2) {
        int mine = f->operand & -d, peer = coll__fold_rank(f, f->operand ^ d);

        plan_send(plan, peer, operands(pb, f, mine, d));
        plan_recv(plan, peer, operands(pb, f, mine ^ d, d));
    }
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__fold f = coll__fold_of(p, r);

    plan_copy(plan, held(pb, r, r + 1), coll__own_in(pb));
    if (f.operand < 0) {
        plan_send(plan, r - 1, held(pb, r, r + 1));
        plan_recv(plan, r - 1, held(pb, 0, p));
    } else {
        if (f.operand < f.e)
            plan_recv(plan, r + 1, held(pb, r + 1, r + 2));
        exchange_all(pb, plan, &f);
        if (f.operand < f.e)
            plan_send(plan, r + 1, held(pb, 0, p));
    }
    if (pb->out_counts)
        coll__plan_unpack(pb, plan, 0, p, held(pb, 0, p));
    return plan_status(plan);
}

/* The fold, log2(m) exchanges, the unfold. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int p = pb->nranks, d = round ? 1 << (round - 1) : 0;
    struct coll__fold f = coll__fold_of(p, rank);
    int from = rank, to = rank + 1;

    message->to = rank - 1;
    if (f.operand >= 0 && round) {
        from = d < f.m ? coll__fold_rank(&f, f.operand & -d) : 0;
        to = d < f.m ? coll__fold_rank(&f, (f.operand & -d) + d) : p;
        message->to = d < f.m ? coll__fold_rank(&f, f.operand ^ d) : rank + 1;
    }
    message->at = message->put = from;
    message->n_blocks = to - from;
    message->n = coll__mean_part(pb, BUF_OUT) * (to - from);
    if (!round)
        return f.operand < 0;
    return f.operand >= 0 && (d < f.m || f.operand < f.e);
}

/* The time where groups are alike, or messages are too many to follow each one. */
static double closed_form(const struct coll__problem *pb)
{
    double n = coll__mean_part(pb, BUF_OUT), time;
    int p = pb->nranks, m = power2_below(p), e = p - m;
    struct coll__doubling doubling = {
        .fold = coll__cost_exchange(pb->view, 1, n),
        .unfold = coll__cost_exchange(pb->view, 1, n * p)};

    /* long messages of one rank share its link, and the rounds count that; the lower
     * rank of the last pair receives two messages at once */
    time = doubling.fold + doubling.unfold;
    if (e % 2)
        time += coll__cost_next(pb->view, n);
    for (int d = 1, k = 0; d < m; d *= 2, k++) { /* the first ones hold pairs */
        doubling.round[k] =
            coll__halves_exchange(pb, d, n * (d + (d < e ? d : e)));
        time += doubling.round[k];
    }
    return n <= COLL__EAGER || !e ? coll__doubling_cost(p, &doubling) : time;
}

static double cost(const struct coll__problem *pb)
{
    double n = coll__mean_part(pb, BUF_OUT), time;
    int p = pb->nranks;
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(power2_below(p)) + 2,
                                  .n_blocks = p,
                                  .block = n,
                                  .send = send_in};

    time = coll__rounds_are_followed(&rounds) ? coll__rounds_cost(&rounds)
                                              : closed_form(pb);
    if (pb->out_counts)
        time += coll__cost_work(pb->view, n * (p + 1));
    return time;
}

const struct coll__algo coll__algo_allgather_recursive_doubling = {
    .name = "recursive_doubling",
    .what = "all that is held to partners at distance 1, 2, 4, ...",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .build = build,
    .cost = cost,
};
