/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairwise alltoall: in round s = 1 .. p-1 send to rank r + s, receive from
 * rank r - s.
 *
 * With n bytes for each rank, T = (p - 1) (alpha + n beta).  Each rank takes in
 * one block at a time, so no receiver is overrun: best for large n on networks
 * that suffer when many send to one.
 *
 *   p = 4: the rank that each rank sends to
 *             round 1    round 2    round 3
 *     0       1          2          3
 *     1       2          3          0
 *     2       3          0          1
 *     3       0          1          2
 *
 * An ORDER step keeps the rounds apart: this round's receive waits until the last
 * round's block has arrived.
 *
 * In place, round s would overwrite block r - s, which is not sent before round
 * p - s.  So the blocks of the first half of the rounds are saved in scratch.
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"

/* Return where round s's block is saved. */
static struct coll__span saved(const struct coll__problem *pb, int s)
{
    return coll__part(pb, BUF_TMP, s - 1);
}

/* Return the block that leaves in round s. */
static struct coll__span leaving(const struct coll__problem *pb, int s)
{
    if (!pb->in_place)
        return coll__part(pb, BUF_IN, pb->rank + s);
    return 2 * s < pb->nranks ? coll__part(pb, BUF_OUT, pb->rank + s)
                              : saved(pb, pb->nranks - s);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;

    plan_copy(plan, coll__part(pb, BUF_OUT, r), coll__own_in(pb));
    for (int s = 1; s < p; s++) {
        struct coll__span out = coll__part(pb, BUF_OUT, r - s);

        if (pb->in_place && 2 * s <= p)
            plan_copy(plan, saved(pb, s), out);
        plan_send(plan, (r + s) % p, leaving(pb, s));
        if (s > 1)
            plan_order(plan, out, coll__part(pb, BUF_OUT, r - s + 1));
        plan_recv(plan, (r - s + p) % p, out);
    }
    return plan_status(plan);
}

/* A round's block comes after the block of the round before; all blocks that leave are
 * there from the beginning. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    message->to = (rank + round + 1) % pb->nranks;
    message->n_blocks = 1;
    message->put = 1;
    message->n = coll__mean_part(pb, BUF_OUT);
    message->is_ordered = 1;
    message->pieces = 1;
    return 1;
}

static double cost(const struct coll__problem *pb)
{
    struct coll__rounds rounds = {.pb = pb,
                                  .n = pb->nranks - 1,
                                  .n_blocks = 2,
                                  .block = 1,
                                  .send = send_in};
    double n = coll__mean_part(pb, BUF_OUT);
    /* short messages leave at once, whatever the round */
    double all = coll__cost_all(pb->view, n);
    double time = 0;
    int p = pb->nranks;

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int s = 1; s < p; s++)
        time += coll__cost_shift(pb->view, s <= p / 2 ? s : p - s, n);
    return n <= COLL__EAGER ? all : time;
}

const struct coll__algo coll__algo_alltoall_pairwise = {
    .name = "pairwise",
    .what = "one block to r + s and one from r - s, p-1 rounds",
    .serves = COLL_FOR(ALLTOALL) | COLL_FOR(ALLTOALLV),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
