/* SPDX-License-Identifier: BSD-3-Clause */
/* combine.c - combine the operands of all ranks on one of them.
 *
 * If any order will do, a few long operands are added one after the other as they
 * come; they need no space of their own.  Otherwise all operands come at once and are
 * combined in the canonical tree.  Each pair is combined in the left operand's place,
 * or in the right one's if this rank's own operand is in it.  So the result is where
 * this rank's operand was.
 */
#include "lib/algo/combine.h"
#include "lib/util/util.h"

struct coll__span coll__operand(const struct coll__operands *all, int q)
{
    size_t place = (size_t)(q < all->rank ? q : q - 1);

    return q == all->rank ? all->own
                          : coll__scratch(all->own, place * all->own.len);
}

static struct coll__span join(struct coll__plan *plan,
                              const struct coll__operands *all,
                              struct coll__span left, struct coll__span right)
{
    if (right.buf == all->own.buf && right.off == all->own.off) {
        plan_reduce_left(plan, right, left);
        return right;
    }
    plan_reduce(plan, left, right);
    return left;
}

/* Combine n (a power of two) operands of the fold; returns where the result is. */
static struct coll__span subtree(struct coll__plan *plan,
                                 const struct coll__operands *all,
                                 const struct coll__fold *fold, int first,
                                 int n)
{
    int q = coll__fold_rank(fold, first);
    struct coll__span left = coll__operand(all, q), right;

    if (n == 1 && first >= fold->e)
        return left;
    if (n == 1)
        return join(plan, all, left, coll__operand(all, q + 1));
    left = subtree(plan, all, fold, first, n / 2);
    right = subtree(plan, all, fold, first + n / 2, n / 2);
    return join(plan, all, left, right);
}

/* Are operands added one after the other, as they come? */
static int is_chain(int p, double n, enum coll__order order)
{
    return order == ORDER_FREE && p <= COLL__CHAIN_RANKS && n >= COLL__CHAIN;
}

void coll__plan_combine(struct coll__plan *plan,
                        const struct coll__operands *all,
                        enum coll__order order)
{
    struct coll__fold fold = coll__fold_of(all->nranks, all->rank);
    int p = all->nranks, chain = is_chain(p, (double)all->own.len, order);

    for (int d = 1; d < p; d++) {
        int q = (all->rank - d + p) % p;

        plan_recv(plan, q, coll__operand(all, q));
        if (chain)
            plan_reduce(plan, all->own, coll__operand(all, q));
    }
    if (!chain)
        subtree(plan, all, &fold, 0, fold.m);
}

/* Return the number of operands that arrive before the processor has work without a
 * break.  A short operand is combined only when all of it has arrived.  A longer
 * operand waits for the operand that it is added to.  If all operands share a link,
 * half of them arrive before the first pair is complete; if they arrive one by one,
 * only a few do. */
static double combine_delay(int p, double n, int is_together)
{
    double most = p - 1, few = is_together ? 2 : 3, waits;

    if (n <= COLL__EAGER)
        return most < few ? most : few;
    if (is_together)
        return p / 2 + (p < 8 ? 0 : p < 16 ? p / 8.0 : 2);
    waits = most < 7 - 10.0 / p ? most : 7 - 10.0 / p;
    return waits + (p - power2_below(p)) % 2;
}

/* In a chain a piece is sent only after the piece before it has been added. */
double coll__combine_latency(const struct coll__view *view,
                             enum coll__order order, double n)
{
    double piece = n / coll__pieces(view, n);
    int p = view->nranks;

    if (p < 2 || view->levels[view->n_levels - 1].once > 0 ||
        !is_chain(p, n, order))
        return 0;
    return (p - 1) * (coll__cost_message(view, p - 1, piece) +
                      coll__cost_work(view, piece));
}

double coll__combine_cost(const struct coll__view *view, enum coll__order order,
                          double n, double come, int is_together)
{
    double alpha = view->levels[view->n_levels - 1].alpha;
    double work = coll__cost_work(view, n), k = coll__pieces(view, n);
    double busy, last; /* the processor's time, or the links' */
    int p = view->nranks;

    if (p < 2)
        return come;
    if (view->levels[view->n_levels - 1].once > 0)
        return come; /* read and combined in one pass */
    busy = (p - 1) * work + combine_delay(p, n, is_together) *
                                (come - alpha) / (p - 1) / k;
    last = come - alpha + log2_up(p) * work / k;
    if (p > 2 && n > COLL__EAGER)
        busy += alpha;
    return max_double(alpha + (busy > last ? busy : last),
                      coll__combine_latency(view, order, n));
}
