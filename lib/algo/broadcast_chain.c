/* SPDX-License-Identifier: BSD-3-Clause */
/* Chain broadcast: each rank passes the vector on to the next one.
 *
 * The pass `split` cuts the vector into k chunks, so all links are busy at
 * once: T = (p - 2 + k) (alpha + n/k beta), near n beta for large n and any p.
 * The chain is the ring, cut before the root.
 *
 *   p = 4, root 2, chunks x y z    2 -> 3 -> 0 -> 1
 *     time 0: 2-x->3      time 1: 2-y->3-x->0      time 2: 2-z->3-y->0-x->1
 *
 * Source: Barnett et al., J. Parallel Distrib. Comput. 44(1), 1997 (pipelined
 * broadcast).
 */
#include "lib/algo/algo.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    const struct coll__view *view = pb->view;
    int p = pb->nranks, place = coll__ring_place(view, pb->rank);
    int v = (place - coll__ring_place(view, pb->root) + p) % p;
    struct coll__span out = coll__whole(pb, BUF_OUT), from = out;

    if (v)
        plan_recv(plan, coll__ring_at(view, p, place - 1), out);
    else if (!pb->in_place)
        from = coll__whole(pb, BUF_IN);
    if (v + 1 < p)
        plan_send(plan, coll__ring_at(view, p, place + 1), from);
    if (from.buf == BUF_IN)
        plan_copy(plan, out, from);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb), k = coll__pieces(pb->view, n);

    return pb->nranks > 1
               ? (pb->nranks - 1) *
                         coll__cost_chain(pb->view, pb->root, n / k) +
                     (k - 1) * coll__cost_chain_next(pb->view, pb->root, n / k)
               : 0;
}

const struct coll__algo coll__algo_broadcast_chain = {
    .name = "chain",
    .what = "chunks from rank to rank, all links busy",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
};
