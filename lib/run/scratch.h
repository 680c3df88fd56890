/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch.h - the memory in which operations of a communicator hold what is
 * between their steps: lent to those that run, not to each shape.
 */
#ifndef COLL_LIB_RUN_SCRATCH_H
#define COLL_LIB_RUN_SCRATCH_H

#include "lib/device/device.h"

#include <stdint.h>

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

/* Take len bytes out of the pool, which gets them from the device where it has
 * none that are idle.
 *
 * Shapes:    aligned to a page; what was in them is left there.
 * Ownership: *scratch is the pool's, to be put back.
 * Errors:    COLL_ERR_NOMEM, logged.
 * Cost:      no allocation where as many as are taken now were taken before, of
 *            these lengths or longer; see scratch.c for what is given back.
 */
int coll__scratch_take(struct coll__pool *pool,
                       const struct coll__device *device, size_t len,
                       struct coll__scratch **scratch);
void coll__scratch_put(struct coll__pool *pool, struct coll__scratch *scratch);

/* Give all to the device, also what was not put back. */
void coll__pool_fini(struct coll__pool *pool);

#endif
