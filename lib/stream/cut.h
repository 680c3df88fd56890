/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.h - an operation in pieces, each of which fits a slot of a stage.
 *
 * A piece is the same collective over some elements of each rank's part: piece k
 * has elements [k * most, (k + 1) * most) of every part that is so long.  All ranks
 * cut alike, since they all know the slot's length and the number of ranks.
 *
 * The slot holds the parts of the larger buffer side by side.  The other buffer is the
 * rank's own part among them, so a piece is in place.  The two buffers of an alltoall
 * have half of the slot each.
 *
 * In alltoallv, gatherv and scatterv a rank does not know how many pieces the others
 * have, so all ranks take part in the largest number of pieces.  Messages between
 * two ranks are cut into units.  The unit does not depend on the batch's other messages,
 * since these differ at the two ends.
 *
 * Pure: only numbers, no addresses.
 */
#ifndef COLL_LIB_STREAM_CUT_H
#define COLL_LIB_STREAM_CUT_H

#include "lib/plan/plan.h"

#define COLL__CUT_UNITS 64 /* messages that a slot holds at least */

struct coll__cut {
    struct coll__problem pb; /* the whole operation; its arrays are in `numbers` */
    size_t size;             /* bytes of an element */
    size_t at, len;          /* the bytes of the slot that it may use */
    size_t most;             /* elements of a part in one piece */
    size_t unit;             /* elements, for a message; 0 for collectives */
    uint32_t n;              /* pieces of this rank, 1 at least */
    size_t *numbers;         /* [8 nranks] or NULL: for the whole and for a piece */
};

/* Cut an operation.
 *
 * Shapes:    it may use len bytes from `at` on of a slot of slot_len bytes; a
 *            collective uses all.  For a message, len is a unit at least, or the
 *            message's length.
 * Result:    *cut, whose pb has arrays of its own.
 * Ownership: the caller ends *cut by coll__cut_fini().
 * Errors:    COLL_ERR_UNSUPPORTED: the slot is too small for one element of each
 *            part; COLL_ERR_NOMEM; neither is logged, nothing remains.
 */
int coll__cut_init(struct coll__cut *cut, const struct coll__problem *pb,
                   size_t slot_len, size_t at, size_t len);
void coll__cut_fini(struct coll__cut *cut);

/* Return bytes of a message's unit in slots of this length. */
size_t coll__cut_unit(size_t slot_len, enum coll_type type);

/* Piece k as a problem; after the last piece it has no elements.  The cut owns its
 * arrays, until the next call.  *in and *out: where its buffers begin in the slot. */
void coll__cut_piece(struct coll__cut *cut, uint32_t k,
                     struct coll__problem *pb, size_t *in, size_t *out);

/* A run of bytes of a buffer, and its place in the slot. */
struct coll__cut_span {
    size_t there, here, len;
};

/* Fetch the next run of piece k: 1, or 0 after the last.  The caller sets *part to 0
 * before the first. */
int coll__cut_next(const struct coll__cut *cut, uint32_t k, enum coll__buf buf,
                   int *part, struct coll__cut_span *span);

#endif
