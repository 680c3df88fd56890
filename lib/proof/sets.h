/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.h - sets of ranks, each stored once and identified by a number. */
#ifndef COLL_LIB_PROOF_SETS_H
#define COLL_LIB_PROOF_SETS_H

#include <stdint.h>

struct coll__sets {
    uint64_t *bits; /* n sets of n_words each */
    int n, cap, n_words;
    int *table; /* hash table of set numbers, -1 empty */
    int table_len;
};

/* Sets over n_ranks ranks.  COLL_OK or COLL_ERR_NOMEM. */
int coll__sets_init(struct coll__sets *sets, int n_ranks);

/* Return the set {rank}, the set of the first n ranks, or a union; -1 = no memory. */
int coll__sets_one(struct coll__sets *sets, int rank);
int coll__sets_all(struct coll__sets *sets, int n_ranks);
int coll__sets_union(struct coll__sets *sets, int a, int b);

/* Say whether a and b have a rank in common. */
int coll__sets_meet(const struct coll__sets *sets, int a, int b);

void coll__sets_fini(struct coll__sets *sets);

#endif
