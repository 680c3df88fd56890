/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - the tree over ranks 0..size-1 by which they are connected, rooted at 0.
 *
 * No rank has more than two children, and the depth is at most ceil(log2(size)).  So a
 * broadcast costs each rank at most three times the data's length and takes at most that
 * many hops.
 *
 * Every rank heads a range of ranks that begins with it; the root's is [0, size).  Among
 * the others in its range, one is the roundest: the multiple of the highest power of two.
 * That rank heads the range from itself to the end; the rank after the first heads the
 * ranks between:
 *
 *   size 8      0              0: [0, 8), of 1..7 the roundest is 4
 *              / \             1: [1, 4), of 2..3 it is 2
 *             1   4            4: [4, 8), of 5..7 it is 6
 *             |  / \           6: [6, 8)
 *             2 5   6
 *             |     |
 *             3     7
 *
 * So the blocks of every subtree are contiguous, its head's first.  If a host has ranks
 * 8 k ... 8 k + 7, they form a connected part of the tree; the same holds for any power
 * of two.
 *
 * The roundest rank in (a, b] has b's bits down to the highest bit in which a and b
 * differ, and zeros below.  All numbers of the range agree above that bit, so each level
 * down has one differing bit less.
 */
#ifndef COLL_LIB_NET_TREE_H
#define COLL_LIB_NET_TREE_H

#define COLL__MAX_CHILDREN 2

/* A rank's place: its parent, and the end of its range. */
struct coll__tree_seat {
    int parent; /* 0 for the root */
    int end;
    int depth;
};

/* Return the position of the highest bit in which a and b differ, counted from 1. */
static inline int coll__tree_n_bits(int a, int b)
{
    return a == b ? 0 : 32 - __builtin_clz((unsigned)(a ^ b));
}

/* Return the roundest rank of [first + 1, end). */
static inline int coll__tree_middle(int first, int end)
{
    int low = coll__tree_n_bits(first, end - 1) - 1;

    return low < 0 ? end : (end - 1) >> low << low;
}

static inline struct coll__tree_seat coll__tree_seat(int rank, int size)
{
    struct coll__tree_seat seat = {0, size, 0};
    int first = 0;

    while (first != rank) {
        int middle = coll__tree_middle(first, seat.end);

        seat.parent = first;
        seat.depth++;
        if (rank < middle) {
            first++;
            seat.end = middle;
        } else {
            first = middle;
        }
    }
    return seat;
}

static inline int coll__tree_parent(int rank, int size)
{
    return coll__tree_seat(rank, size).parent;
}

/* Return the number of ranks at and below this one. */
static inline int coll__tree_span(int rank, int size)
{
    return coll__tree_seat(rank, size).end - rank;
}

static inline int coll__tree_depth(int rank, int size)
{
    return coll__tree_seat(rank, size).depth;
}

/* Return an upper bound of the levels below this rank; each child's is smaller. */
static inline int coll__tree_height(int rank, int size)
{
    return coll__tree_n_bits(rank, coll__tree_seat(rank, size).end - 1);
}

static inline int coll__tree_n_children(int rank, int size)
{
    int end = coll__tree_seat(rank, size).end;

    return end == rank + 1 ? 0 : 1 + (coll__tree_middle(rank, end) > rank + 1);
}

/* Return its child number j, counted from 0. */
static inline int coll__tree_child(int rank, int size, int j)
{
    return j ? coll__tree_middle(rank, coll__tree_seat(rank, size).end)
             : rank + 1;
}

/* Return the number of the child that leads to `to`, or -1: the parent.  to != rank. */
static inline int coll__tree_route(int rank, int size, int to)
{
    int end = coll__tree_seat(rank, size).end;
    int middle = coll__tree_middle(rank, end);

    return to < rank || to >= end ? -1 : middle > rank + 1 && to >= middle;
}

#endif
