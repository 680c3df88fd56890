/* SPDX-License-Identifier: BSD-3-Clause */
/* combine.h - combine operands of several ranks on one rank.
 *
 * BUF_IN is read only, so a sum needs another place.  plan_absorb() reads the own
 * operand in BUF_IN without copying it.
 */
#ifndef COLL_LIB_ALGO_COMBINE_H
#define COLL_LIB_ALGO_COMBINE_H

#include "lib/algo/algo.h"

/* Return a span of BUF_TMP at off that is as long as `span`. */
static inline struct coll__span coll__scratch(struct coll__span span,
                                              size_t off)
{
    return (struct coll__span){BUF_TMP, off, span.len};
}

/* Receive peer's operand and leave its combination with `own` in `sum`; peer's operand
 * is the right one.
 *
 * Shapes:    sum, own and tmp are equally long; sum is own, and then tmp is used, or
 *            sum is another place without content.
 */
static inline void plan_absorb(struct coll__plan *plan, int peer,
                               struct coll__span sum, struct coll__span own,
                               struct coll__span tmp)
{
    int is_own = coll__same_span(&sum, &own);

    plan_recv(plan, peer, is_own ? tmp : sum);
    if (is_own)
        plan_reduce(plan, sum, tmp);
    else
        plan_reduce_left(plan, sum, own);
}

/* The same; peer's operand is the left one. */
static inline void plan_absorb_left(struct coll__plan *plan, int peer,
                                    struct coll__span sum,
                                    struct coll__span own,
                                    struct coll__span tmp)
{
    int is_own = coll__same_span(&sum, &own);

    plan_recv(plan, peer, is_own ? tmp : sum);
    if (is_own)
        plan_reduce_left(plan, sum, tmp);
    else
        plan_reduce(plan, sum, own);
}

/* Operands of all ranks, equally long, to be combined on one rank. */
struct coll__operands {
    int nranks, rank;
    struct coll__span own; /* this rank's operand, writable; the result at the end */
};

/* Return where rank q's operand is received: `own` for this rank, else one of the
 * nranks - 1 places at the start of BUF_TMP. */
struct coll__span coll__operand(const struct coll__operands *all, int q);

/* Receive the others' operands and combine all into all->own, in the canonical tree.
 * If any order will do, operands of at least COLL__CHAIN bytes on at most
 * COLL__CHAIN_RANKS ranks are added as they come; with more ranks the later operands
 * would wait too long. */
#define COLL__CHAIN ((size_t)64 << 10)
#define COLL__CHAIN_RANKS 8
void coll__plan_combine(struct coll__plan *plan,
                        const struct coll__operands *all,
                        enum coll__order order);

/* Predict the time to receive all ranks' operands of n bytes, within `come` s, and
 * combine them.  is_together: they share a link and arrive together; else they arrive
 * one by one. */
double coll__combine_cost(const struct coll__view *view, enum coll__order order,
                          double n, double come, int is_together);

/* Return the part of coll__combine_cost() that one piece of each operand takes if
 * nothing else is under way. */
double coll__combine_latency(const struct coll__view *view,
                             enum coll__order order, double n);

#endif
