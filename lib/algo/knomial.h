/* SPDX-License-Identifier: BSD-3-Clause */
/* knomial.h - who talks to whom in a k-nomial tree of radix 4.
 *
 * Write a node's number in base 4: its parent has the lowest digit that is not
 * 0 cleared; its children are those that have one digit more below that.  With
 * radix 4 a tree of p nodes has half the levels of a binomial one.
 *
 *   9 nodes:  0 - 1 2 3   4 - 5 6 7   8     0 also has 4 and 8
 */
#ifndef COLL_LIB_ALGO_KNOMIAL_H
#define COLL_LIB_ALGO_KNOMIAL_H

#include "lib/algo/algo.h"

#define COLL__RADIX 4

/* The place value of a node's lowest digit that is not 0: its children are
 * closer.  For node 0 the least power of the radix that is not below n. */
static inline int coll__knomial_reach(int node, int n)
{
    int d = 1;

    while (d < n && node / d % COLL__RADIX == 0)
        d *= COLL__RADIX;
    return d;
}

/* The parent of a node other than 0. */
static inline int coll__knomial_parent(int node, int n)
{
    int d = coll__knomial_reach(node, n);

    return node - node / d % COLL__RADIX * d;
}

/* Write the steps that bring the sum of all ranks, combined in the canonical
 * tree, to rank `top` (0, unless any order will do).
 *
 * Shapes:    sum: this rank's place for a vector; scratch begins behind it when
 *            it is scratch itself.
 * Result:    on rank top sum holds the result.
 */
void coll__knomial_reduce(const struct coll__problem *pb,
                          struct coll__plan *plan, int top,
                          struct coll__span sum);

/* Predicted time of that, and of the way back. */
double coll__knomial_up_cost(const struct coll__problem *pb);
double coll__knomial_down_cost(const struct coll__problem *pb);

#endif
