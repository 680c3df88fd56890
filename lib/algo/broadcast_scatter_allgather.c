/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter-allgather broadcast: scatter p blocks of the vector over a binomial
 * tree, then pass them round the ring.
 *
 * T = (log2(p) + p - 1) alpha + 2 (p - 1)/p n beta: about twice the time of one
 * vector over one link for any p, with fewer and larger pieces than a chain
 * needs.  Best for large n if messages cannot be cut into many chunks.
 *
 *   p = 4, root 0, blocks a b c d, one column a rank
 *     start      scatter             ring 1       ring 2       ring 3
 *     a . . .    a . . .             a a . .      a a a .      a a a a
 *     b . . .    b b . .             b b b .      b b b b      b b b b
 *     c . . .    c . c .             c . c c      c . c c      c c c c
 *     d . . .    d . d d             d . d d      d d d d      d d d d
 *
 * Block v belongs to the rank that is v after the root.  A rank that has received a
 * whole subtree's blocks has more than its own; the ring skips blocks that the next
 * rank has.
 *
 * Source: Barnett et al., "Interprocessor collective communication library
 * (InterCom)", Scalable High-Performance Computing Conf., 1994.
 */
#include "lib/algo/algo.h"

/* Does the rank that is v after the root have block b since the scatter? */
static int has(int p, int v, int b)
{
    return b >= v && b < v + coll__subtree(p, v);
}

static int behind_root(const struct coll__problem *pb, int rank)
{
    return (rank - pb->root + pb->nranks) % pb->nranks;
}

static void scatter(const struct coll__problem *pb, struct coll__plan *plan,
                    struct coll__span from)
{
    int p = pb->nranks, v = behind_root(pb, pb->rank), n = coll__subtree(p, v);

    if (v)
        plan_recv(plan, (pb->rank - (v & -v) + p) % p,
                  coll__cuts(pb, from, p, v, v + n));
    for (int child = 1 << log2_up(n) >> 1; child; child /= 2)
        plan_send(plan, (pb->rank + child) % p,
                  coll__cuts(pb, from, p, v + child,
                             v + child + coll__subtree(p, v + child)));
}

static void allgather(const struct coll__problem *pb, struct coll__plan *plan,
                      struct coll__span from)
{
    int p = pb->nranks, place = coll__ring_place(pb->view, pb->rank);
    int left = coll__ring_at(pb->view, p, place - 1);
    int right = coll__ring_at(pb->view, p, place + 1);

    for (int s = 0; s < p - 1; s++) {
        int had = behind_root(pb, coll__ring_at(pb->view, p, place - s));
        int gets = behind_root(pb, coll__ring_at(pb->view, p, place - s - 1));

        if (!has(p, behind_root(pb, right), had))
            plan_send(plan, right, coll__cut(pb, from, p, had));
        if (!has(p, behind_root(pb, pb->rank), gets))
            plan_recv(plan, left, coll__cut(pb, from, p, gets));
    }
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct coll__span from = pb->rank == pb->root ? coll__own_in(pb) : out;

    scatter(pb, plan, from);
    allgather(pb, plan, from);
    plan_copy(plan, out, from);
    return plan_status(plan);
}

/* The root's own block goes round the whole ring, after the root has sent the
 * scatter's messages. */
static double cost(const struct coll__problem *pb)
{
    int p = pb->nranks;
    double share = (double)coll__problem_bytes(pb) / p;
    double time = (p - 1) * coll__cost_ring(pb->view, share);

    for (int child = 1 << log2_up(p) >> 1; child; child /= 2)
        time += coll__cost_next(pb->view, share * coll__subtree(p, child));
    return time;
}

const struct coll__algo coll__algo_broadcast_scatter_allgather = {
    .name = "scatter_allgather",
    .what = "blocks down a binomial tree, then round the ring",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
};
