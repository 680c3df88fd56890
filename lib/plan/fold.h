/* SPDX-License-Identifier: BSD-3-Clause */
/* fold.h - the numbers of trees: powers of two, subtrees of a binomial tree, and the fold
 * that begins the canonical tree (lib/algo/algo.h). */
#ifndef COLL_LIB_PLAN_FOLD_H
#define COLL_LIB_PLAN_FOLD_H

/* Return the least k with 2^k >= n. */
static inline int log2_up(int n)
{
    int k = 0;

    while (1 << k < n)
        k++;
    return k;
}

/* Return the largest power of two that is not above n >= 1. */
static inline int power2_below(int n)
{
    int m = 1;

    while (m <= n / 2)
        m *= 2;
    return m;
}

/* Return the number of nodes in the subtree of node v (v included) in a binomial tree
 * of p nodes.  The parent of v is v without its lowest bit. */
static inline int coll__subtree(int p, int v)
{
    return v && (v & -v) < p - v ? v & -v : p - v;
}

/* How the first step of the canonical tree folds p ranks to m = 2^k operands. */
struct coll__fold {
    int m, e; /* m operands; the first e of them are pairs of ranks */
    int operand; /* this rank's operand, 0 .. m-1; -1: folded into the rank before it */
};

static inline struct coll__fold coll__fold_of(int p, int rank)
{
    int m = power2_below(p), e = p - m;
    int operand = rank >= 2 * e ? rank - e : rank % 2 ? -1 : rank / 2;

    return (struct coll__fold){m, e, operand};
}

/* Return the rank that holds an operand after the fold. */
static inline int coll__fold_rank(const struct coll__fold *fold, int operand)
{
    return operand < fold->e ? 2 * operand : operand + fold->e;
}

#endif
