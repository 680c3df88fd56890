/* SPDX-License-Identifier: BSD-3-Clause */
/* Chain scan: each rank adds its vector to what comes from the rank before, and passes
 * the sum on to the next rank.
 *
 * The pass `split` cuts the vector into k pieces, so all links are busy at once:
 * T = (p-1) (alpha + n/k (beta + gamma)) + (k-1) n/k max(beta, gamma), near
 * n max(beta, gamma) for large n.  The chain is in the order of the ranks, so it wins
 * where neighbours are near each other.
 *
 *   p = 4, pieces x y z    0 -> 1 -> 2 -> 3
 *     time 0: 0-x->1       time 1: 0-y->1-x->2      time 2: 0-z->1-y->2-x->3
 *
 * In an exscan a rank keeps what it receives and passes on the sum.
 *
 * Source: Sanders and Traeff, EuroPVM/MPI 2006 (LNCS 4192).
 */
#include "lib/algo/combine.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int r = pb->rank, is_last = r + 1 == pb->nranks;
    struct coll__span own = coll__own_in(pb), out = coll__whole(pb, BUF_OUT);
    struct coll__span tmp = coll__whole(pb, BUF_TMP), sum = own;

    if (pb->collective == COLL_SCAN) {
        sum = out;
        if (r)
            plan_absorb_left(plan, r - 1, out, own, tmp);
        else
            plan_copy(plan, out, own);
    } else if (r) {
        sum = tmp;
        if (!is_last)
            plan_copy(plan, sum, own);
        plan_recv(plan, r - 1, out);
        if (!is_last)
            plan_reduce_left(plan, sum, out);
    }
    if (!is_last)
        plan_send(plan, r + 1, sum);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), k = coll__pieces(view, n);
    double work = coll__cost_work(view, n / k), all = work, hop, next;
    int hops = pb->nranks - 1, n_sums = hops;

    if (hops < 1)
        return 0;
    if (view->is_contiguous) { /* as the ring, cut before rank 0 */
        hop = coll__cost_chain(view, 0, n / k);
        next = coll__cost_chain_next(view, 0, n / k);
    } else {
        hop = coll__cost_message(view, 1, n / k);
        next = coll__cost_shift(view, 1, n / k);
    }
    if (pb->collective == COLL_EXSCAN) { /* the last rank only receives */
        n_sums = hops - 1;
        all = n_sums ? 2 * work : 0; /* with the copy */
    }
    return hops * hop + n_sums * work + (k - 1) * (next > all ? next : all);
}

const struct coll__algo coll__algo_scan_chain = {
    .name = "chain",
    .what = "pieces from rank to rank, all links busy",
    .serves = COLL_FOR(SCAN) | COLL_FOR(EXSCAN),
    .build = build,
    .cost = cost,
};
