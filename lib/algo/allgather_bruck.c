/* SPDX-License-Identifier: BSD-3-Clause */
/* Bruck's allgather: double the number of blocks held in each round.
 *
 * Rank r collects the blocks r, r+1, r+2, ... in scratch, in that order.  In round k
 * it receives the blocks of rank r + 2^k (as many as are still missing) and sends its
 * blocks to rank r - 2^k.  The last round's message leaves as soon as its blocks are
 * there, which may be before the last but one round ends.  At the end the blocks are
 * copied to their places.  With n bytes from each rank,
 * T = ceil(log2 p) alpha + (p-1) n beta + p n gamma.  Best for small n.
 *
 *   p = 5, one column a rank, scratch from the top
 *     start        round 0      round 1      round 2
 *     a b c d e    a b c d e    a b c d e    a b c d e
 *                  b c d e a    b c d e a    b c d e a
 *                               c d e a b    c d e a b
 *                               d e a b c    d e a b c
 *                                            e a b c d
 *
 * Source: Bruck et al., IEEE Trans. Parallel Distrib. Syst. 8(11), 1997.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"
#include "lib/util/util.h"

/* Return the scratch for the n blocks from rank `first` on, which begins after `off`
 * bytes. */
static struct coll__span held(const struct coll__problem *pb, size_t off,
                              int first, int n)
{
    return (struct coll__span){BUF_TMP, off,
                               coll__parts_len(pb, BUF_OUT, first, n)};
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    int last = 1 << log2_up(p) >> 1, rest = p - last;
    struct coll__span own = held(pb, 0, r, 1), all = own;

    plan_copy(plan, own, coll__own_in(pb));
    for (int have = 1; have < p; have *= 2) {
        int n = have < last ? have : rest;
        struct coll__span get = held(pb, all.len, r + have, n);

        if (have < last)
            plan_send(plan, (r - have + p) % p, held(pb, 0, r, have));
        if (have / 2 < rest && rest <= have)
            plan_send(plan, (r - last + p) % p, held(pb, 0, r, rest));
        plan_recv(plan, (r + have) % p, get);
        all.len += get.len;
    }
    if (pb->in_place) /* all but its own block */
        coll__plan_unpack(pb, plan, r + 1, p - 1,
                          (struct coll__span){BUF_TMP, own.len, 0});
    else
        coll__plan_unpack(pb, plan, r, p, own);
    return plan_status(plan);
}

static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int p = pb->nranks, have = 1 << round;

    message->to = (rank - have + p) % p;
    message->n_blocks = have < p - have ? have : p - have;
    message->put = have;
    message->n = coll__mean_part(pb, BUF_OUT) * message->n_blocks;
    return 1;
}

/* The last message waits only for the rounds that bring its blocks.  The first message
 * leaves from IN, while this rank's own block is copied to scratch. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = coll__mean_part(pb, BUF_OUT), time = 0, ready = 0, last = 0;
    int p = pb->nranks, rest = p - (1 << log2_up(p) >> 1);
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(p),
                                  .n_blocks = p,
                                  .block = n,
                                  .copied = p * n,
                                  .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int have = 1; have < p; have *= 2) {
        double come = coll__cost_shift(view, have, n * rest);
        double bytes = come - coll__cost_shift(view, have, 0);

        if (have < rest)
            ready = time + coll__cost_shift(view, have, n * have);
        if (2 * have < p)
            time += coll__cost_shift(view, have, n * have);
        else
            last = max_double(ready + come, time + bytes);
    }
    return last + coll__cost_work(view, p * n);
}

const struct coll__algo coll__algo_allgather_bruck = {
    .name = "bruck",
    .what = "twice the blocks in each of log2(p) rounds",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .build = build,
    .cost = cost,
};
