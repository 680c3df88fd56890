/* SPDX-License-Identifier: BSD-3-Clause */
/* Bruck's allgather: double the number of blocks held in each round.
 *
 * Rank r collects the blocks r, r+1, r+2, ... in scratch, in that order: in
 * round k it gets from rank r + 2^k what that one has (as many as are still
 * missing) and gives its own to r - 2^k.  At the end the blocks are turned into
 * place.  With n bytes from each rank,
 * T = ceil(log2 p) alpha + (p-1) n beta + (p+1) n gamma.  Best for small n.
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

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank, have = 1;

    plan_copy(plan, coll__slots(pb, BUF_TMP, 0, 1),
              pb->in_place ? coll__slots(pb, BUF_OUT, r, 1)
                           : coll__whole(pb, BUF_IN));
    while (have < p) {
        int n = have < p - have ? have : p - have;

        plan_send(plan, (r - have + p) % p, coll__slots(pb, BUF_TMP, 0, n));
        plan_recv(plan, (r + have) % p, coll__slots(pb, BUF_TMP, have, n));
        have += n;
    }
    plan_copy(plan, coll__slots(pb, BUF_OUT, r, p - r),
              coll__slots(pb, BUF_TMP, 0, p - r));
    if (r)
        plan_copy(plan, coll__slots(pb, BUF_OUT, 0, r),
                  coll__slots(pb, BUF_TMP, p - r, r));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb, const struct coll__cost *c)
{
    double n = (double)coll__problem_bytes(pb);

    return log2_up(pb->nranks) * c->alpha + (pb->nranks - 1) * n * c->beta +
           (pb->nranks + 1) * n * c->gamma;
}

const struct coll__algo coll__algo_allgather_bruck = {
    .name = "bruck",
    .what = "twice the blocks in each of log2(p) rounds",
    .collective = COLL_ALLGATHER,
    .build = build,
    .cost = cost,
};
