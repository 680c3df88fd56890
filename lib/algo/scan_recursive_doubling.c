/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling scan: in round k each rank sends the sum of the last 2^k ranks up
 * to itself to the rank 2^k further on, so that sums double in length.
 *
 * T = ceil(log2 p) (alpha + n beta + n gamma), for any p.  Best for small n.  An exscan
 * keeps a second sum, which lacks the own vector: 2 n gamma a round.
 *
 *   p = 5            round 0    round 1    round 2       exscan
 *     0: a           a          a          a             -
 *     1: b           ab         ab         ab            a
 *     2: c           bc         abc        abc           ab
 *     3: d           cd         abcd       abcd          abc = (ab) c
 *     4: e           de         bcde       abcde         abcd = a ((bc) d)
 *
 * The received sum is always of lower ranks, and stays on the left.
 *
 * Source: Kogge and Stone, IEEE Trans. Comput. C-22(8), 1973; Hillis and Steele,
 * Commun. ACM 29(12), 1986.
 */
#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank, is_scan = pb->collective == COLL_SCAN;
    struct coll__span own = coll__own_in(pb), out = coll__whole(pb, BUF_OUT);
    struct coll__span tmp = coll__whole(pb, BUF_TMP), sum = is_scan ? out : own;

    if (!is_scan && r && r + 2 < p) { /* the sum of an exscan grows */
        sum = tmp;
        tmp.off = tmp.len;
    }
    plan_copy(plan, sum, own);
    for (int d = 1; d < p; d *= 2) {
        struct coll__span got = d == 1 && !is_scan ? out : tmp;

        if (d < p - r)
            plan_send(plan, r + d, sum);
        if (r < d)
            continue;
        plan_recv(plan, r - d, got);
        if (is_scan || 2 * d < p - r)
            plan_reduce_left(plan, sum, got);
        if (!is_scan && d > 1)
            plan_reduce_left(plan, out, got);
    }
    return plan_status(plan);
}

/* An exscan's sum goes on with all that has come, and the result lacks the own vector. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int d = 1 << round,
        last = pb->nranks - 1 - rank - d; /* behind the receiver */
    int is_scan = pb->collective == COLL_SCAN;

    message->to = rank + d;
    message->n_blocks = 1;
    message->n = (double)coll__problem_bytes(pb);
    message->n_works = is_scan ? 1 : (round > 0) + (2 * d <= last);
    return last >= 0;
}

/* Return the latency of a round.  The chain of messages that takes longest ends on the
 * last rank, and is 0, 1, 3, 7, ... if p is a power of two. */
static double latency(const struct coll__problem *pb, int d)
{
    const struct coll__view *view = pb->view;
    int l = 0, p = pb->nranks;

    if (p & (p - 1))
        return coll__cost_shift(view, d, 0);
    while (l < view->n_levels - 1 &&
           view->levels[l].group[d - 1] != view->levels[l].group[2 * d - 1])
        l++;
    return view->levels[l].alpha;
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), k = coll__pieces(view, n);
    double time = 0;
    int is_scan = pb->collective == COLL_SCAN;
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(pb->nranks),
                                  .n_blocks = 1,
                                  .block = n,
                                  .is_held = 1,
                                  .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds);
    for (int d = 1; d < pb->nranks; d *= 2) {
        double bytes =
            coll__cost_shift(view, d, n) - coll__cost_shift(view, d, 0);
        int n_sums = is_scan ? 1 : (d > 1) + (pb->nranks > 3 * d);

        if (2 * d <= pb->nranks || n > COLL__EAGER)
            time += coll__cost_absorb(k, latency(pb, d) + bytes,
                                      n_sums * coll__cost_work(view, n));
        else /* what comes from the first ranks is there before */
            time += coll__cost_next(view, n);
    }
    return time;
}

const struct coll__algo coll__algo_scan_recursive_doubling = {
    .name = "recursive_doubling",
    .what = "sums of 1, 2, 4, ... ranks to the rank that far on",
    .serves = COLL_FOR(SCAN) | COLL_FOR(EXSCAN),
    .is_canonical = 1,
    .build = build,
    .cost = cost,
};
