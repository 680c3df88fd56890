/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.h - an operation in pieces, each of which fits a slot of a stage.
 *
 * A piece is the same collective over some elements of each rank's part: piece k
 * has elements [k * most, (k + 1) * most) of every part, as far as there are so
 * many.  So all ranks cut alike by what they all know: slot and number of ranks.
 *
 * In the slot lie the parts of the larger buffer side by side, and the other
 * buffer as the rank's own part among them: a piece is in place.  The two buffers
 * of an alltoall have half of the slot each.
 *
 * Of alltoallv, gatherv and scatterv a rank does not know how many pieces others
 * have: all take part in as many as the one with the most has.  Messages between
 * two ranks are cut by a unit that does not depend on what else travels, since it
 * is not the same at both ends.
 *
 * Pure: numbers alone, no addresses.
 */
#ifndef COLL_LIB_STREAM_CUT_H
#define COLL_LIB_STREAM_CUT_H

#include "lib/plan/plan.h"

#define COLL__CUT_UNITS 64 /* messages that a slot holds at least */

struct coll__cut {
    struct coll__problem pb; /* of the whole; its arrays are in `numbers` */
    size_t size;             /* bytes of an element */
    size_t at, len;          /* of the slot: bytes that are this one's */
    size_t most;             /* elements of a part in one piece */
    size_t unit;             /* elements of a message; of collectives 0 */
    uint32_t n;              /* pieces of this rank, 1 at least */
    size_t *numbers;         /* [8 nranks] or NULL: of the whole, of a piece */
};

/* Cut an operation.
 *
 * Shapes:    len bytes from `at` on of a slot of slot_len; of collectives all of
 *            it.  Of a message len is a unit's at least, or all of the message.
 * Result:    *cut, whose pb has arrays of its own.
 * Ownership: to be ended by coll__cut_fini().
 * Errors:    COLL_ERR_UNSUPPORTED: not one element of each part fits;
 *            COLL_ERR_NOMEM; neither is logged, nothing remains.
 */
int coll__cut_init(struct coll__cut *cut, const struct coll__problem *pb,
                   size_t slot_len, size_t at, size_t len);
void coll__cut_fini(struct coll__cut *cut);

/* Bytes of a message's unit in slots of that length. */
size_t coll__cut_unit(size_t slot_len, enum coll_type type);

/* Piece k as a problem, of no elements beyond the last; its arrays are the cut's
 * until the next call.  *in and *out: where its buffers begin in the slot. */
void coll__cut_piece(struct coll__cut *cut, uint32_t k,
                     struct coll__problem *pb, size_t *in, size_t *out);

/* A run of bytes of a buffer and where it is in the slot. */
struct coll__cut_span {
    size_t there, here, len;
};

/* Fetch the next run of piece k: 1, or 0 when there is no more.  *part is 0 at
 * first. */
int coll__cut_next(const struct coll__cut *cut, uint32_t k, enum coll__buf buf,
                   int *part, struct coll__cut_span *span);

#endif
