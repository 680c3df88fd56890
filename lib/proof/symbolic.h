/* SPDX-License-Identifier: BSD-3-Clause */
/* symbolic.h - what a buffer holds, symbolically.
 *
 * A piece says: bytes [off, off + len) hold the combination of the inputs, from
 * byte `from` on, of the ranks in set `set`, combined as tree `tree` says.
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

/* Put what [off, off + len) of mem holds into `to`, in place of what that had,
 * with offsets counted from off.  COLL_OK, COLL_ERR_INVALID when a part holds
 * nothing, COLL_ERR_NOMEM. */
int coll__memory_read(const struct coll__memory *mem, size_t off, size_t len,
                      struct coll__memory *to);

/* Put the pieces of `what` (offsets from 0, covering len) at off.
 * COLL_OK or COLL_ERR_NOMEM. */
int coll__memory_write(struct coll__memory *mem, size_t off, size_t len,
                       const struct coll__memory *what);

/* Append one piece, which must lie behind the last; one that goes on where the
 * last ends only makes it longer.  COLL_OK or COLL_ERR_NOMEM. */
int coll__memory_append(struct coll__memory *mem,
                        const struct coll__piece *piece);

void coll__memory_fini(struct coll__memory *mem);

#endif
