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

/* Bytes of the parts of n ranks from rank `first` on. */
static size_t parts_len(const struct coll__problem *pb, int first, int n)
{
    size_t len = 0;

    for (int i = first; i < first + n; i++)
        len += coll__part(pb, BUF_OUT, i).len;
    return len;
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank, have = 1;
    struct coll__span held = {BUF_TMP, 0, parts_len(pb, r, 1)}, part;

    plan_copy(plan, held, coll__own_in(pb));
    while (have < p) {
        int n = have < p - have ? have : p - have;
        struct coll__span give = {BUF_TMP, 0, parts_len(pb, r, n)};
        struct coll__span get = {BUF_TMP, held.len,
                                 parts_len(pb, r + have, n)};

        plan_send(plan, (r - have + p) % p, give);
        plan_recv(plan, (r + have) % p, get);
        held.len += get.len;
        have += n;
    }
    part.buf = BUF_TMP;
    part.off = 0;
    for (int i = r; i < r + p; i++, part.off += part.len) {
        part.len = coll__part(pb, BUF_OUT, i).len;
        if (i != r || !pb->in_place)
            plan_copy(plan, coll__part(pb, BUF_OUT, i), part);
    }
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = coll__mean_part(pb, BUF_OUT), time = 0;
    int p = pb->nranks;

    for (int have = 1; have < p; have *= 2)
        time += coll__cost_shift(pb->view, have,
                                 n * (have < p - have ? have : p - have));
    return time + coll__cost_work(pb->view, (p + 1) * n);
}

const struct coll__algo coll__algo_allgather_bruck = {
    .name = "bruck",
    .what = "twice the blocks in each of log2(p) rounds",
    .serves = COLL_FOR(ALLGATHER) | COLL_FOR(ALLGATHERV),
    .build = build,
    .cost = cost,
};
