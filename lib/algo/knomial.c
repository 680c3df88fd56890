/* SPDX-License-Identifier: BSD-3-Clause */
/* knomial.c - the way up a k-nomial tree.
 *
 * Radix 4 joins two levels of the canonical tree: a node and its children a, b, c of
 * one level combine as (node a) (b c).  The tree has the operands of the fold as its
 * nodes, a power of two.  So each level has three children, except the last one, which
 * may have one.
 */
#include "lib/algo/knomial.h"
#include "lib/algo/combine.h"
#include "lib/algo/halves.h"
#include "lib/plan/view_tree.h"

struct climber {
    struct coll__plan *plan;
    struct coll__fold fold;
    int top, p;
    struct coll__span sum, own, tmp[3]; /* own: in IN, later in sum */
};

static int rank_of(const struct climber *c, int operand)
{
    return (c->top + coll__fold_rank(&c->fold, operand)) % c->p;
}

/* Receive and add the sums of the children at distances d, 2d, 3d. */
static void absorb_level(struct climber *c, int d)
{
    int node = c->fold.operand;

    plan_absorb(c->plan, rank_of(c, node + d), c->sum, c->own, c->tmp[0]);
    c->own = c->sum;
    if (2 * d >= c->fold.m)
        return;
    plan_recv(c->plan, rank_of(c, node + 2 * d), c->tmp[1]);
    plan_recv(c->plan, rank_of(c, node + 3 * d), c->tmp[2]);
    plan_reduce(c->plan, c->tmp[1], c->tmp[2]);
    plan_reduce(c->plan, c->sum, c->tmp[1]);
}

void coll__knomial_reduce(const struct coll__problem *pb,
                          struct coll__plan *plan, int top,
                          struct coll__span sum)
{
    int p = pb->nranks, node;
    size_t free = sum.buf == BUF_TMP ? sum.off + sum.len : 0;
    struct climber c = {.plan = plan,
                        .fold = coll__fold_of(p, (pb->rank - top + p) % p),
                        .top = top,
                        .p = p,
                        .sum = sum,
                        .own = coll__own_in(pb)};

    for (int i = 0; i < 3; i++)
        c.tmp[i] = coll__scratch(sum, free + (size_t)i * sum.len);
    node = c.fold.operand;
    if (node < 0) {
        plan_send(plan, (pb->rank - 1 + p) % p, c.own);
        return;
    }
    if (node < c.fold.e) {
        plan_absorb(plan, (pb->rank + 1) % p, sum, c.own, c.tmp[0]);
        c.own = sum;
    }
    for (int d = 1; d < coll__knomial_reach(node, c.fold.m); d *= COLL__RADIX)
        absorb_level(&c, d);
    if (node)
        plan_send(plan, rank_of(&c, coll__knomial_parent(node, c.fold.m)),
                  c.own);
    else
        plan_copy(plan, sum, c.own); /* if there is one rank */
}

/* Return the number of messages between a node and its children of one level. */
static int level_fan(int m, int d) { return 2 * d < m ? COLL__RADIX - 1 : 1; }

/* Return the time of one level: messages of n bytes from, or to, the children at
 * distances d, 2d, 3d. */
static double level_cost(const struct coll__problem *pb, int m, int d, double n)
{
    int fan = level_fan(m, d);

    return coll__cost_fan(pb->view, fan, fan * coll__halves_far(pb, d), n);
}

/* Return the time of the fold.  The fold adds latency only if one of the longest paths
 * begins at a folded pair.  Pairs come first in the order of operands, so it is enough
 * to look at the first of the leaves that are farthest from the root. */
static double odd_cost(const struct coll__problem *pb, double n, int is_up)
{
    double work = is_up ? coll__cost_work(pb->view, n) : 0;
    int m = power2_below(pb->nranks), leaf = 0;

    for (int d = 1; d < m; d *= COLL__RADIX)
        leaf += d;
    if (m == pb->nranks)
        return 0;
    /* a single child's long vector waits for the vector that it is added to; with more
     * children the work overlaps with messages */
    if (leaf < pb->nranks - m || (is_up && m == 2 && n > COLL__EAGER))
        return coll__cost_message(pb->view, 1, n) + work;
    return coll__cost_next(pb->view, n);
}

/* Return the time up one level, in pieces or in one message.  With three children, the
 * last child's vector is added to another child's; a long vector waits for that one. */
static double up_cost(const struct coll__problem *pb, int m, int d, double n)
{
    const struct coll__view *view = pb->view;
    double work = coll__cost_work(view, n), k = coll__pieces(view, n);
    double come = level_cost(pb, m, d, n), one, rest;
    int fan = level_fan(m, d);

    if (k > 1 || fan == 1)
        return coll__cost_absorb(k, come, fan * work);
    one = coll__cost_fan(view, 1, 3 * d, n);
    rest = n > COLL__EAGER ? one : come - one; /* overlaps with the first reduction */
    if (n > COLL__EAGER)
        come += coll__cost_fan(view, 1, 3 * d, 0);
    return come + 2 * work + (work > rest ? work - rest : 0);
}

double coll__knomial_up_cost(const struct coll__problem *pb, int top)
{
    double n = (double)coll__problem_bytes(pb), time = 0;
    int m = power2_below(pb->nranks);
    struct coll__tree_shape shape = {
        .radix = COLL__RADIX, .root = top, .is_folded = 1};

    if (!coll__tree_is_even(pb->view, top))
        return coll__tree_cost(pb->view, &shape, TREE_REDUCE, n);
    for (int d = 1; d < m; d *= COLL__RADIX)
        time += up_cost(pb, m, d, n);
    return time + odd_cost(pb, n, 1);
}

double coll__knomial_down_cost(const struct coll__problem *pb)
{
    double n = (double)coll__problem_bytes(pb), time = 0;
    int m = power2_below(pb->nranks);
    struct coll__tree_shape shape = {.radix = COLL__RADIX, .is_folded = 1};

    if (!coll__tree_is_even(pb->view, 0))
        return coll__tree_cost(pb->view, &shape, TREE_DOWN, n);
    for (int d = 1; d < m; d *= COLL__RADIX)
        time += level_cost(pb, m, d, n);
    return time + odd_cost(pb, n, 0);
}
