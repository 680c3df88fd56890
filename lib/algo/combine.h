/* SPDX-License-Identifier: BSD-3-Clause */
/* combine.h - bring operands of several ranks together on one.
 *
 * BUF_IN is read only, so a sum grows elsewhere; plan_absorb() reads the own
 * operand where it lies and spares the copy.
 */
#ifndef COLL_LIB_ALGO_COMBINE_H
#define COLL_LIB_ALGO_COMBINE_H

#include "lib/algo/algo.h"

/* As much of BUF_TMP from off on as span is long. */
static inline struct coll__span coll__scratch(struct coll__span span,
                                              size_t off)
{
    return (struct coll__span){BUF_TMP, off, span.len};
}

/* Receive peer's operand and leave its combination with `own` in `sum`.
 *
 * Shapes:    sum, own and tmp are equally long; sum may be own, else it holds
 *            nothing yet; tmp is used in the first case only.  is_left: peer's
 *            operand goes to the left of own.
 */
static inline void plan_absorb(struct coll__plan *plan, int peer, int is_left,
                               struct coll__span sum, struct coll__span own,
                               struct coll__span tmp)
{
    int is_own = sum.buf == own.buf && sum.off == own.off;

    plan_recv(plan, peer, is_own ? tmp : sum);
    if (is_left == is_own)
        plan_reduce_left(plan, sum, is_own ? tmp : own);
    else
        plan_reduce(plan, sum, is_own ? tmp : own);
}

/* Equally long operands of all ranks on one of them. */
struct coll__operands {
    int nranks, rank;
    struct coll__span own; /* writable: this rank's, at last the result */
};

/* Where rank q's operand lies: `own`, or a place of its own at the start of
 * BUF_TMP, which has nranks - 1 of them. */
struct coll__span coll__operand(const struct coll__operands *all, int q);

/* Receive the others' and combine all into all->own: in the canonical tree,
 * unless any order will do and there are so few that have so many bytes: of
 * more, the later ones would wait too long for the earlier ones. */
#define COLL__CHAIN ((size_t)64 << 10)
#define COLL__CHAIN_RANKS 8
void coll__plan_combine(struct coll__plan *plan,
                        const struct coll__operands *all,
                        enum coll__order order);

/* Predicted time of all ranks' operands of n bytes that come within `come` s and
 * are combined; is_together: they share the way, else they come one by one. */
double coll__combine_cost(const struct coll__view *view, enum coll__order order,
                          double n, double come, int is_together);

/* Of that, the time of one piece when nothing else is under way. */
double coll__combine_latency(const struct coll__view *view,
                             enum coll__order order, double n);

#endif
