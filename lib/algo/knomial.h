/* SPDX-License-Identifier: BSD-3-Clause */
/* knomial.h - parents and children in a k-nomial tree of radix 4.
 *
 * Write a node's number in base 4.  Its parent's number has the lowest non-zero digit
 * cleared.  Its children's numbers have one more non-zero digit below that digit.  A
 * tree of p nodes with radix 4 has half the levels of a binomial tree.
 *
 *   9 nodes:  0 - 1 2 3   4 - 5 6 7   8     0 also has 4 and 8
 */
#ifndef COLL_LIB_ALGO_KNOMIAL_H
#define COLL_LIB_ALGO_KNOMIAL_H

#include "lib/algo/algo.h"

#define COLL__RADIX 4

/* Return the place value of a node's lowest non-zero digit: its children are nearer
 * than that.  For node 0: the least power of the radix that is at least n. */
static inline int coll__knomial_reach(int node, int n)
{
    int d = 1;

    while (d < n && node / d % COLL__RADIX == 0)
        d *= COLL__RADIX;
    return d;
}

/* Return the parent of a node other than 0. */
static inline int coll__knomial_parent(int node, int n)
{
    int d = coll__knomial_reach(node, n);

    return node - node / d % COLL__RADIX * d;
}

/* Write the steps that bring the sum of all ranks, combined in the canonical tree, to
 * rank `top` (0, unless any order will do).
 *
 * Shapes:    sum: this rank's place for a vector; if it is in scratch, other scratch
 *            begins after it.
 * Result:    on rank top, sum holds the result.
 */
void coll__knomial_reduce(const struct coll__problem *pb,
                          struct coll__plan *plan, int top,
                          struct coll__span sum);

/* Predict the time of the way up to a rank, and of the way down from rank 0. */
double coll__knomial_up_cost(const struct coll__problem *pb, int top);
double coll__knomial_down_cost(const struct coll__problem *pb);

#endif
