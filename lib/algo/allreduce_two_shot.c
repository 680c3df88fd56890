/* SPDX-License-Identifier: BSD-3-Clause */
/* Two-shot allreduce: a direct reduce-scatter of p blocks, in which every rank
 * combines its own block (in the canonical tree, if the order matters), then
 * a direct allgather.
 *
 * T = 2 (alpha + (p-2) gap + (p-1)/p n beta) + n gamma: the least bytes in two
 * steps.  Best for medium n if there is a link between any two ranks.
 *
 *   p = 3, one column a rank, blocks from the top, X = sum over all ranks
 *     start        first shot    second shot
 *     a0 b0 c0     X0 .  .       X0 X0 X0
 *     a1 b1 c1     .  X1 .       X1 X1 X1
 *     a2 b2 c2     .  .  X2      X2 X2 X2
 *
 * Source: the direct exchanges of Chan et al., Concurr. Comput. Pract. Exp.
 * 19(13), 2007.
 */
#include "lib/algo/combine.h"
#include "lib/util/util.h"

/* The factor on the second shot's time if it follows the first one piece by piece,
 * with more than MANY pieces: the bytes to send are still in the cache. */
#define NEAR 0.9
#define MANY 4

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    enum coll__buf in = pb->in_place ? BUF_OUT : BUF_IN;
    struct coll__operands all = {p, r, coll__block(pb, BUF_OUT, r)};

    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, coll__block(pb, in, r + d));
    plan_copy(plan, all.own, coll__block(pb, in, r));
    coll__plan_combine(plan, &all, pb->order);
    plan_finish(pb, plan, all.own);

    plan_next_phase(plan);
    for (int d = 1; d < p; d++)
        plan_send(plan, (r + d) % p, all.own);
    for (int d = 1; d < p; d++)
        plan_recv(plan, (r - d + p) % p, coll__block(pb, BUF_OUT, r - d));
    return plan_status(plan);
}

/* Return the time that the order of messages costs.  Messages to one rank leave in
 * order, and both shots send to the same ranks.  So a block's third piece leaves only
 * after the sum of its first piece. */
static double pieces_in_turn(const struct coll__problem *pb, double block)
{
    double k = coll__pieces(pb->view, block);

    return k > 1 ? k / 2 * coll__combine_latency(pb->view, pb->order, block)
                 : 0;
}

static double cost(const struct coll__problem *pb)
{
    double block = (double)coll__problem_bytes(pb) / pb->nranks;
    double all = coll__cost_all(pb->view, block);
    double both = coll__combine_cost(pb->view, pb->order, block, all, 0) +
                  (coll__pieces(pb->view, block) > MANY ? NEAR : 1) *
                      coll__cost_all_same(pb->view, block);

    return max_double(both, pieces_in_turn(pb, block) + all / 2);
}

const struct coll__algo coll__algo_allreduce_two_shot = {
    .name = "two_shot",
    .what = "direct reduce-scatter, then direct allgather",
    .serves = COLL_FOR(ALLREDUCE),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
