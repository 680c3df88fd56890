/* SPDX-License-Identifier: BSD-3-Clause */
/* Bruck's alltoall: blocks travel in strides of 1, 2, 4, ..., many in one
 * message.
 *
 * Blocks of rank r are numbered by their distance: block j is for rank r - j.  In
 * round k every block with bit k of j set moves 2^k ranks down.  So after all
 * rounds each block has moved j ranks, and rank r's block j comes from rank
 * r + j.  With n bytes for each rank,
 * T = ceil(log2 p) (alpha + p/2 n beta) + (log2(p)/2 + 1) p n gamma.  Best for
 * small n: log2(p) messages in place of p - 1, each byte sent log2(p)/2 times.
 *
 *   p = 4: what rank 0 holds as block j ("a->b": from a, for b)
 *        start    after round 0 (j odd)    after round 1 (j = 2, 3)
 *     1  0->3     1->0                     1->0
 *     2  0->2     0->2                     2->0
 *     3  0->1     1->2                     3->0
 *
 * Received blocks stay where they arrived until a later round sends them or the end
 * copies them to OUT, so blocks are not rotated before and after.  Blocks of round k
 * are in the order of j.  Blocks with equal bits above i, and with bit i as their
 * highest bit below k, are neighbours in the message of round i and are copied
 * together.
 *
 * Source: Bruck et al., IEEE Trans. Parallel Distrib. Syst. 8(11), 1997.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"
#include "lib/util/util.h"

/* Count the numbers below n that have bit k. */
static int count_bit(int n, int k)
{
    int rest = (n & ((2 << k) - 1)) - (1 << k);

    return (n >> (k + 1) << k) + (rest > 0 ? rest : 0);
}

/* Return n blocks, from block j on, in the message that leaves in round k. */
static struct coll__span leaving(const struct coll__problem *pb, int k, int j,
                                 int n)
{
    return coll__parts(pb, BUF_TMP, count_bit(j, k), n);
}

/* Return n blocks, from block j on, in the message that round k received.  It is in
 * scratch after p/2 blocks for messages that leave and after the earlier rounds'
 * messages. */
static struct coll__span taken(const struct coll__problem *pb, int k, int j,
                               int n)
{
    int from = pb->nranks / 2 + count_bit(j, k);

    for (int i = 0; i < k; i++)
        from += count_bit(pb->nranks, i);
    return coll__parts(pb, BUF_TMP, from, n);
}

/* Pack the blocks [j, j + 2^k), which leave in round k. */
static void pack(const struct coll__problem *pb, struct coll__plan *plan, int k,
                 int j)
{
    int p = pb->nranks;
    enum coll__buf in = pb->in_place ? BUF_OUT : BUF_IN;

    plan_copy(plan, leaving(pb, k, j, 1), coll__part(pb, in, pb->rank - j));
    for (int i = 0; i < k && j + (1 << i) < p; i++) {
        int from = j + (1 << i), n = min_int(1 << i, p - from);

        plan_copy(plan, leaving(pb, k, from, n), taken(pb, i, from, n));
    }
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    for (int k = 0; 1 << k < p; k++) {
        int n = count_bit(p, k);

        for (int j = 1 << k; j < p; j += 2 << k)
            pack(pb, plan, k, j);
        plan_send(plan, (r - (1 << k) + p) % p, leaving(pb, k, 0, n));
        plan_recv(plan, (r + (1 << k)) % p, taken(pb, k, 0, n));
    }
    plan_copy(plan, coll__part(pb, BUF_OUT, r), coll__own_in(pb));
    for (int k = 0; 1 << k < p; k++) {
        int n = min_int(1 << k, p - (1 << k));

        coll__plan_unpack(pb, plan, r + (1 << k), n, taken(pb, k, 0, n));
    }
    return plan_status(plan);
}

/* Block k + 1 of the vector is what round k brings.  A short last round carries only blocks
 * of rounds whose distance is below the number of blocks left. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int p = pb->nranks, d = 1 << round, last = 1 << log2_up(p) >> 1;
    int n = count_bit(p, round), own = (p + d - 1) / (2 * d);
    double block = (double)coll__problem_bytes(pb);

    message->to = (rank - d + p) % p;
    message->n_blocks = (d == last ? log2_up(p - last) : round) + 1;
    message->put = round + 1;
    message->n = block * n;
    message->pieces = 1;
    if (n > 1)
        message->packed = block * (round ? n - own : own);
    message->copied = block * min_int(d, p - d);
    return 1;
}

/* A short last round carries only blocks of rounds whose distance is below the number
 * of blocks left, but it waits for the buffer that the round before sends from.  A
 * single block leaves from IN, at once.  If groups share their links, ranks wait for
 * each other, and half of the packing is done meanwhile. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), time = 0, begun = 0, ready = 0;
    int p = pb->nranks, last = 1 << log2_up(p) >> 1;
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(p),
                                  .n_blocks = log2_up(p) + 1,
                                  .block = 1,
                                  .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int k = 0; 1 << k < p; k++) {
        int is_alone = count_bit(p, k) == 1;
        double len = n * count_bit(p, k);
        double work = is_alone ? 0 : coll__cost_work(view, len);
        double come = coll__cost_shift(view, 1 << k, len);

        if (k && view->n_levels > 1)
            work /= 2;
        if (k && 1 << k == last && (is_alone || len <= COLL__EAGER)) {
            begun = max_double(ready, begun + view->levels[0].overhead) + work;
            if (is_alone)
                begun = coll__cost_ring_next(view, len);
            time = max_double(begun + come, time);
            break;
        }
        begun = time + work;
        time = begun + come;
        if (1 << k < p - last)
            ready = time;
    }
    return time + coll__cost_work(view, n * p / 2);
}

const struct coll__algo coll__algo_alltoall_bruck = {
    .name = "bruck",
    .what = "blocks in strides of 2^k, log2(p) messages",
    .serves = COLL_FOR(ALLTOALL),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
