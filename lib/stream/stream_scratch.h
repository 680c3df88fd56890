/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.h - memory of a device that operations of streams work in, one after
 * the other. */
#ifndef COLL_LIB_STREAM_STREAM_SCRATCH_H
#define COLL_LIB_STREAM_STREAM_SCRATCH_H

#include <stddef.h>

/* All zero at first. */
struct coll__stream_scratch {
    void *at;                        /* NULL: there is none */
    size_t len, taken;               /* bytes there, and in all */
    struct coll__stream_room *rooms; /* all that there ever was */
};

/* Have len bytes at `at`, on the current context's device.  What was there before
 * stays allocated: streams may be at it, and the driver waits for streams when it
 * frees.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len);

/* Free all of it: streams have passed what worked there, or the communicator has
 * failed. */
void coll__stream_scratch_free(struct coll__stream_scratch *scratch);

#endif
