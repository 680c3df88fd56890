/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch.h - memory for intermediate results of a communicator's operations.  It is
 * lent to the operations that run; shapes that do not run hold none.
 */
#ifndef COLL_LIB_RUN_SCRATCH_H
#define COLL_LIB_RUN_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

struct coll__device;

enum { COLL__SCRATCH_SIZES = 64 }; /* powers of two */

struct coll__scratch {
    unsigned char *base;
    size_t len; /* a power of two, a page at least */
    const struct coll__device *device;
    uint64_t needed;            /* the take, counted, that needed no less */
    struct coll__scratch *next; /* of the pool's idle ones */
    struct coll__scratch *all_next, **all_at; /* among all of the pool's */
};

/* All 0 at first. */
struct coll__pool {
    struct coll__scratch *idle[COLL__SCRATCH_SIZES]; /* of 2^i bytes */
    int n_of[COLL__SCRATCH_SIZES];                   /* idle or not */
    struct coll__scratch *all;
    size_t bytes; /* of all */
    uint64_t n_takes;
};

/* Take len bytes from the pool, which allocates them on the device if no idle piece is
 * long enough.
 *
 * Shapes:    aligned to a page; the content is not cleared.
 * Ownership: *scratch stays the pool's; coll__scratch_put() returns it.
 * Errors:    COLL_ERR_NOMEM, logged.
 * Cost:      no allocation if as many pieces, of these lengths or longer, were in use
 *            at once before; scratch.c says when the pool frees pieces.
 */
int coll__scratch_take(struct coll__pool *pool,
                       const struct coll__device *device, size_t len,
                       struct coll__scratch **scratch);
void coll__scratch_put(struct coll__pool *pool, struct coll__scratch *scratch);

/* Free all pieces, also those that were not put back. */
void coll__pool_fini(struct coll__pool *pool);

#endif
