/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.h - device memory in which operations of streams work, one after the
 * other. */
#ifndef COLL_LIB_STREAM_STREAM_SCRATCH_H
#define COLL_LIB_STREAM_STREAM_SCRATCH_H

#include <stddef.h>

/* All zero at first. */
struct coll__stream_scratch {
    void *at;                           /* NULL: there is none */
    size_t len, taken;                  /* bytes there, and in all */
    struct coll__stream_blocks *blocks; /* all that there ever was */
};

/* Make sure that `at` has len bytes, on the current context's device.  An older buffer
 * stays allocated: streams may still use it, and freeing it would wait for them.
 * COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len);

/* The run that is being captured in `stream` uses it: it outlives the communicator as long
 * as there is the graph.  A status, logged. */
int coll__stream_scratch_hold(const struct coll__stream_scratch *scratch,
                              void *stream);

/* Free all of it, or leave it to the graphs that need it; the streams have passed all
 * operations that use it, or the communicator has failed. */
void coll__stream_scratch_free(struct coll__stream_scratch *scratch);

#endif
