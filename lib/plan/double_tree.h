/* SPDX-License-Identifier: BSD-3-Clause */
/* double_tree.h - two binary trees over the same ranks: parents and children.
 *
 * A rank that has children in one tree has none in the other.  (If the number of
 * ranks is odd, one rank has none in either.)  Half of the vector goes in each tree,
 * so all ranks send and receive equally much, and all links are busy.  Both trees
 * are in-order: a subtree is a run of neighbours.
 *
 *   7 nodes, first tree        second tree: the same, turned by one
 *         4                          5
 *       /   \                      /   \
 *      2     6                    3     7
 *     / \   / \                  / \   / \
 *    1   3 5   7                2   4 6   1
 *
 * For an even number the second tree is the first one's mirror image.
 *
 * Source: Sanders, Speck and Traeff, Parallel Comput. 35(12), 2009.
 */
#ifndef COLL_LIB_PLAN_DOUBLE_TREE_H
#define COLL_LIB_PLAN_DOUBLE_TREE_H

#include "lib/plan/plan.h"

struct coll__tree_node {
    int up, down[2], n_down; /* nodes; up is -1 at the top */
};

/* Return the neighbours of a node (0 .. n-1) in tree `which` (0 or 1) of n nodes. */
struct coll__tree_node coll__double_tree(int n, int which, int node);

/* The trees of a collective with a root span all other ranks: node v is the rank v + 1
 * places after the root in the ring. */
struct coll__rooted {
    int up, down[2], n_down; /* ranks; the root is above both tops */
};
struct coll__rooted coll__double_tree_rooted(const struct coll__problem *pb,
                                             int which);

/* The load by one piece of both halves: messages through the busiest node in the
 * busier direction, and messages that a node adds to its own. */
struct coll__tree_load {
    int n_messages, n_reduced;
};

/* Predict the time of a problem's vector, half of it in each tree of `nodes` nodes:
 * all ranks, or all but a root above both trees.  passes: 2 if the result comes back. */
double coll__double_tree_cost(const struct coll__problem *pb, int nodes,
                              int passes, struct coll__tree_load load);

#endif
