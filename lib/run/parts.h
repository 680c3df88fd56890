/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - do parts of callers' buffers share bytes? */
#ifndef COLL_LIB_RUN_PARTS_H
#define COLL_LIB_RUN_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* Parts of one buffer; one of no elements is nowhere. */
struct coll__parts {
    uintptr_t base;                /* address of the buffer */
    size_t size;                   /* bytes of an element */
    const size_t *counts, *displs; /* [n], elements */
    int n;
};

/* What it takes to put them in order without an allocation. */
struct coll__sorter {
    size_t *room;   /* [3n] */
    size_t n_looks; /* at parts, so far */
};

/* Do two of these parts share bytes?
 *
 * Cost:      n looks where parts are in order, else n log n.
 */
int coll__parts_overlap(const struct coll__parts *parts,
                        struct coll__sorter *sorter);

/* Does one of a share bytes with one of b, which have no more than n? */
int coll__parts_meet(const struct coll__parts *a, const struct coll__parts *b,
                     struct coll__sorter *sorter);

#endif
