/* SPDX-License-Identifier: BSD-3-Clause */
/* trees.h - the orders in which contributions were combined, as trees.  Each tree is
 * stored once and identified by a number: equal trees have equal numbers. */
#ifndef COLL_LIB_PROOF_TREES_H
#define COLL_LIB_PROOF_TREES_H

struct coll__tree {
    int left, right; /* the two subtrees; a leaf has its rank, and -1 */
};

struct coll__trees {
    struct coll__tree *trees;
    int n, cap;
    int *table; /* hash table of tree numbers, -1 empty */
    int table_len;
    int commutes; /* left and right may swap */
};

int coll__trees_init(struct coll__trees *trees, int commutes);

/* Return the tree of a rank's own input, or of a combination of two; -1 = no memory. */
int coll__trees_leaf(struct coll__trees *trees, int rank);
int coll__trees_pair(struct coll__trees *trees, int left, int right);

/* Return the canonical tree over n ranks (lib/algo/algo.h); -1 = no memory. */
int coll__trees_canonical(struct coll__trees *trees, int n_ranks);

/* Return the canonical tree of a rank's scan or exscan; -1 = no memory.  The exscan of
 * rank 0 has none. */
int coll__trees_scan(struct coll__trees *trees, int rank);
int coll__trees_exscan(struct coll__trees *trees, int rank);

void coll__trees_fini(struct coll__trees *trees);

#endif
