/* SPDX-License-Identifier: BSD-3-Clause */
/* intern.h - number distinct keys 0, 1, 2 ... in the order of their first use: a hash
 * table that only grows. */
#ifndef COLL_LIB_PLAN_INTERN_H
#define COLL_LIB_PLAN_INTERN_H

#include <stdint.h>

struct coll__slot {
    uint64_t key;
    int number; /* -1: free */
};

struct coll__numbers {
    struct coll__slot *slots; /* [1 << bits] */
    int bits, n;
};

/* Allocate space for n_expected keys, at least for a few.  COLL_OK or COLL_ERR_NOMEM
 * (not logged).  The caller calls coll__numbers_fini() in both cases. */
int coll__numbers_init(struct coll__numbers *numbers, int n_expected);
void coll__numbers_fini(struct coll__numbers *numbers);

/* Return the key's number; -1 without memory for a new one.
 *
 * Cost:      O(1) amortised; memory for the distinct keys.
 */
int coll__number(struct coll__numbers *numbers, uint64_t key);

#endif
