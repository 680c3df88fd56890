/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - the binomial tree over ranks 0..size-1, rooted at 0.
 *
 * Rank r's parent is r without its lowest set bit; its child j is r + 2^j.
 * Below child j lie the ranks r + 2^j ... r + 2^(j+1) - 1, so that the blocks
 * of every subtree are contiguous:
 *
 *   size 6     0             below 0: 0..5
 *             /|\
 *            1 2 4           below 2: 2..3, below 4: 4..5
 *              | |
 *              3 5
 */
#ifndef COLL_LIB_NET_TREE_H
#define COLL_LIB_NET_TREE_H

#define COLL__MAX_CHILDREN 31

static inline int coll__tree_parent(int rank) { return rank & (rank - 1); }

/* Return the number of ranks at and below this one. */
static inline int coll__tree_span(int rank, int size)
{
    int low = rank & -rank;

    return rank && low < size - rank ? low : size - rank;
}

static inline int coll__tree_n_children(int rank, int size)
{
    int n = 0;

    while (1 << n < coll__tree_span(rank, size))
        n++;
    return n;
}

/* Return which child leads to `to`, or -1 for the parent; to is not rank. */
static inline int coll__tree_route(int rank, int size, int to)
{
    int j = 0;

    if (to < rank || to >= rank + coll__tree_span(rank, size))
        return -1;
    while (2 << j <= to - rank)
        j++;
    return j;
}

#endif
