/* SPDX-License-Identifier: BSD-3-Clause */
/* symbolic.h - what a buffer holds, symbolically.
 *
 * A piece says: bytes [off, off + len) hold a combination of inputs, from byte `from`
 * of each on.  The inputs are those of the ranks in set `set`; tree `tree` is the
 * order in which they were combined.
 */
#ifndef COLL_LIB_PROOF_SYMBOLIC_H
#define COLL_LIB_PROOF_SYMBOLIC_H

#include <stddef.h>

struct coll__piece {
    size_t off, len, from;
    int set, tree;
    int is_scaled; /* divided by the number of ranks */
};

/* Pieces in ascending order, without overlap; gaps hold nothing. */
struct coll__memory {
    struct coll__piece *pieces;
    int n, cap;
};

/* Read [off, off + len) of mem into `to`, whose old pieces are dropped; offsets in
 * `to` count from off.  COLL_OK, COLL_ERR_INVALID if a part is unwritten,
 * COLL_ERR_NOMEM. */
int coll__memory_read(const struct coll__memory *mem, size_t off, size_t len,
                      struct coll__memory *to);

/* Write the pieces of `what` (offsets from 0, covering len) at off.  COLL_OK or
 * COLL_ERR_NOMEM. */
int coll__memory_write(struct coll__memory *mem, size_t off, size_t len,
                       const struct coll__memory *what);

/* Append one piece after the last one; a piece that continues the last one only makes
 * it longer.  COLL_OK or COLL_ERR_NOMEM. */
int coll__memory_append(struct coll__memory *mem,
                        const struct coll__piece *piece);

void coll__memory_fini(struct coll__memory *mem);

#endif
