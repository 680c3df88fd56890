/* SPDX-License-Identifier: BSD-3-Clause */
/* view_tree.h - the predicted time of a k-nomial tree, whose root may be any rank of any
 * machine. */
#ifndef COLL_LIB_PLAN_VIEW_TREE_H
#define COLL_LIB_PLAN_VIEW_TREE_H

#include "lib/plan/view_cost.h"

/* Which way the vectors go. */
enum coll__tree_way {
    TREE_DOWN,    /* each rank sends what it has received */
    TREE_REDUCE,  /* each rank sends the sum of its subtree */
    TREE_SCATTER, /* each rank sends its children the blocks of their subtrees */
    TREE_GATHER   /* each rank sends the blocks of its subtree */
};

/* A k-nomial tree.  Nodes are counted from the root.  A node's parent is the node's
 * number with its lowest non-zero digit cleared, in base `radix`.  A node sends to its
 * farthest child first, and receives from its nearest child first. */
struct coll__tree_shape {
    int radix; /* a power of two */
    int root;  /* a rank */
    int is_folded; /* the nodes are the operands of the fold; the second rank of a pair
                    * is one more child of the first one */
    int is_in_ring; /* nodes are counted along the view's ring, not by ranks */
};

/* Is the time of a tree the same as from rank 0, and do distances alone say which
 * messages leave a group?  Then closed forms serve. */
static inline int coll__tree_is_even(const struct coll__view *view, int root)
{
    int last = view->n_levels - 1;

    return view->is_even &&
           (!last || root % view->levels[last - 1].size_max == 0);
}

/* Predict the time in s by following every message: O(nranks).
 *
 * Shapes:    n is the bytes of the vector, or of one rank's block.
 * Result:    HUGE_VAL if memory is short.
 */
double coll__tree_cost(const struct coll__view *view,
                       const struct coll__tree_shape *shape,
                       enum coll__tree_way way, double n);

/* Predict the time in s of a binomial tree, by closed forms where they serve.
 *
 * Shapes:    as coll__tree_cost(); shape->radix is 2.
 */
double coll__binomial_tree_cost(const struct coll__view *view,
                                const struct coll__tree_shape *shape,
                                enum coll__tree_way way, double n);

#endif
