/* SPDX-License-Identifier: BSD-3-Clause */
/* PAT allgather (parallel aggregated trees): a binomial tree for every block,
 * the longest way first.
 *
 * In round k = K-1 .. 0 (K = ceil(log2 p)) rank r sends to rank r + 2^k the
 * blocks of all ranks r - j for which j is a multiple of 2^(k+1): one block over
 * the longest distance, p/2 over the shortest, the opposite of Bruck's.  With n
 * bytes from each rank, T = log2(p) alpha + (p-1) n beta + 2 (p-1) n gamma if
 * blocks are small and share messages.  Each large block has its own message,
 * straight from OUT to OUT: T = alpha + (p-1) (gap + n beta), or at most
 * log2(p) alpha more.  Best if far links have a low bandwidth.
 *
 *   p = 5, one column a rank
 *     start        k = 2        k = 1        k = 0
 *     a . . . .    a . . . a    a . a . a    a a a a a
 *     . b . . .    b b . . .    b b . b .    b b b b b
 *     . . c . .    . c c . .    . c c . c    c c c c c
 *     . . . d .    . . d d .    d . d d .    d d d d d
 *     . . . . e    . . . e e    . e . e e    e e e e e
 *
 * Scratch is bounded: a message of several blocks goes through one of two slots
 * of SLOT bytes at each end.  Within a round the blocks that arrived first leave
 * first (j in order of its bits from the highest down), so that a long round does
 * not wait for the round before.
 *
 * Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter
 * operations at scale", arXiv 2506.20252, 2025.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"
#include "lib/util/util.h"

#define SLOT 16384 /* beyond this, packing costs more than it saves */
#define MOST 256   /* blocks in one message */

struct pat {
    const struct coll__problem *pb;
    struct coll__plan *plan;
    int at_once;    /* blocks in one message, at most */
    size_t slot;    /* bytes */
    int turn;       /* the pair of slots to use next */
    int n, j[MOST]; /* the message that is being packed */
};

static int blocks_at_once(size_t longest)
{
    if (longest * MOST <= SLOT)
        return MOST;
    return longest < SLOT ? (int)(SLOT / longest) : 1;
}

/* Return the i-th j of round k of `rounds`: the bits of i, reversed, above bit k. */
static int jump(int rounds, int k, int i)
{
    int j = 0;

    for (int bit = rounds - 1; bit > k; bit--, i /= 2)
        j |= (i & 1) << bit;
    return j;
}

/* Exchange several blocks in one message, through one slot at each end. */
static void pass_packed(struct pat *pat, int to, int from)
{
    const struct coll__problem *pb = pat->pb;
    struct coll__span give = {BUF_TMP, 2 * pat->slot * (size_t)pat->turn, 0};
    struct coll__span get = {BUF_TMP, give.off + pat->slot, 0}, one = give;

    for (int i = 0; i < pat->n; i++) {
        one.len = coll__part(pb, BUF_OUT, pb->rank - pat->j[i]).len;
        one.off = give.off + give.len;
        plan_copy(pat->plan, one,
                  coll__part(pb, BUF_OUT, pb->rank - pat->j[i]));
        give.len += one.len;
        get.len += coll__part(pb, BUF_OUT, from - pat->j[i]).len;
    }
    plan_send(pat->plan, to, give);
    plan_recv(pat->plan, from, get);
    one.off = get.off;
    for (int i = 0; i < pat->n; i++, one.off += one.len) {
        one.len = coll__part(pb, BUF_OUT, from - pat->j[i]).len;
        plan_copy(pat->plan, coll__part(pb, BUF_OUT, from - pat->j[i]), one);
    }
    pat->turn = !pat->turn;
}

/* Send and receive the packed message, if there is one. */
static void pass(struct pat *pat, int d)
{
    int p = pat->pb->nranks, r = pat->pb->rank;
    int to = (r + d) % p, from = (r - d + p) % p;

    if (pat->n > 1) {
        pass_packed(pat, to, from);
    } else if (pat->n == 1) {
        plan_send(pat->plan, to, coll__part(pat->pb, BUF_OUT, r - pat->j[0]));
        plan_recv(pat->plan, from,
                  coll__part(pat->pb, BUF_OUT, from - pat->j[0]));
    }
    pat->n = 0;
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct pat pat = {.pb = pb, .plan = plan};
    int p = pb->nranks, rounds = log2_up(p);
    size_t longest = coll__longest_part(pb, BUF_OUT);

    pat.at_once = blocks_at_once(longest);
    pat.slot = (size_t)pat.at_once * longest;
    plan_copy(plan, coll__part(pb, BUF_OUT, pb->rank), coll__own_in(pb));
    for (int k = rounds - 1; k >= 0; k--) {
        for (int i = 0; i < 1 << (rounds - 1 - k); i++) {
            int j = jump(rounds, k, i);

            if (j + (1 << k) >= p)
                continue; /* rank r + 2^k has that block, or there is no such block */
            pat.j[pat.n++] = j;
            if (pat.n == pat.at_once)
                pass(&pat, 1 << k);
        }
        pass(&pat, 1 << k);
    }
    return plan_status(plan);
}

/* Blocks are in the order in which they come. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int p = pb->nranks, d = 1 << log2_up(p) >> 1 >> round;
    int at_once = blocks_at_once(coll__longest_part(pb, BUF_OUT));
    double n = coll__mean_part(pb, BUF_OUT);

    message->to = (rank + d) % p;
    message->n_blocks = (p - 1 + d) / (2 * d);
    message->put = (p - 1) / (2 * d) + 1;
    message->n = n * message->n_blocks;
    message->pieces = (message->n_blocks + at_once - 1) / at_once;
    if (message->n_blocks > 1 && at_once > 1) {
        message->packed = message->n;
        message->copied = message->n;
    } else {
        message->pieces *= (int)coll__pieces(pb->view, n);
    }
    return 1;
}

/* Predict when the last message of the rounds so far has left, and when it has
 * arrived.  A round ends with the blocks of the round before, if there are any, since
 * every round sends the rank's own block.  Half of the packed blocks are there early.
 * The slot of a long packed message is free again when the message has arrived and is
 * unpacked. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = coll__mean_part(pb, BUF_OUT), left = 0, there = 0;
    int p = pb->nranks, at_once = blocks_at_once(coll__longest_part(pb, BUF_OUT));
    struct coll__rounds rounds = {
        .pb = pb, .n = log2_up(p), .n_blocks = p, .block = n, .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int d = 1 << log2_up(p) >> 1; d; d /= 2) {
        int blocks = (p - 1 + d) / (2 * d);
        int messages = (blocks + at_once - 1) / at_once;
        double alpha = coll__cost_shift(view, d, 0);
        double out = coll__cost_shift(view, d, n * blocks) - alpha;
        double gaps = messages * coll__cost_ring_next(view, 0), packed = 0;

        if (blocks > 1 && at_once > 1)
            packed = coll__cost_work(view, n * blocks / messages);
        out = max_double(out, gaps);
        if (messages > 1 && packed > 0 && n * blocks > messages * COLL__EAGER)
            out = max_double(out, messages * (alpha + 2 * packed) / 2 +
                                      out / 2);
        left = blocks > 1 ? max_double(left + out,
                                       there + (packed + out) / messages)
                          : left + out;
        there = max_double(there, left + alpha + packed);
    }
    return there;
}

const struct coll__algo coll__algo_allgather_pat = {
    .name = "pat",
    .what = "a binomial tree for every block, the longest way first",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .build = build,
    .cost = cost,
};
