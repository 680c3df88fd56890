/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - do parts of callers' buffers share bytes? */
#ifndef COLL_LIB_RUN_PARTS_H
#define COLL_LIB_RUN_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* Parts of one buffer.  A part without elements overlaps nothing. */
struct coll__parts {
    uintptr_t base;                /* address of the buffer */
    size_t size;                   /* bytes of an element */
    const size_t *counts, *displs; /* [n], elements */
    int n;
};

/* Memory for sorting, so that a check allocates nothing. */
struct coll__sorter {
    size_t *scratch; /* [3n] */
    size_t n_looks; /* at parts, so far */
};

/* Do two of these parts share bytes?
 *
 * Cost:      n looks at parts if they are in order, else n log n.
 */
int coll__parts_overlap(const struct coll__parts *parts,
                        struct coll__sorter *sorter);

/* Does a part of a share bytes with a part of b?  Each has at most n parts, since the
 * sorter has memory for 3n. */
int coll__parts_meet(const struct coll__parts *a, const struct coll__parts *b,
                     struct coll__sorter *sorter);

#endif
