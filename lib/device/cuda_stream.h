/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stream.h - what a call on a stream has to know from CUDA: who owns its buffers,
 * the stream's context, and whether it is being captured.
 *
 * A stream is the caller's CUstream.  But NULL, the legacy stream, is replaced by CUDA's
 * other handle of it; so a call with a stream that is not NULL is a call for a device.
 */
#ifndef COLL_LIB_DEVICE_CUDA_STREAM_H
#define COLL_LIB_DEVICE_CUDA_STREAM_H

#include "lib/device/cuda.h"

/* CU_STREAM_LEGACY */
#define COLL__LEGACY_STREAM ((void *)1)

/* Look for a CUDA driver in the process, and set coll__device_is_here: a process without
 * one has no device memory.  Costs about a microsecond while there is none. */
void coll__cuda_look(void);

/* Does the thread have a current context?  It has none if the driver is missing or was
 * not started; this does not start it. */
int coll__cuda_has_context(void);

/* Say whether an address is in pinned memory of the host, in a device's memory, or
 * unknown to the driver.
 *
 * Result:    for a device's memory also *owner, unless it is NULL.
 * Threads:   any; a driver that was not started knows no address.
 * Cost:      one call of the driver, some 100 ns.
 */
enum coll__whose { WHOSE_NOBODYS, WHOSE_HOSTS, WHOSE_DEVICES };
struct coll__cuda_owner {
    int device;  /* its number */
    uint64_t id; /* of the allocation, never used again; 0: it has none */
};
enum coll__whose coll__cuda_whose(const void *ptr,
                                  struct coll__cuda_owner *owner);

/* The context of a stream; it is current from enter() to leave(). */
struct coll__cuda_place {
    void *ctx;
    int device;
    int is_captured; /* work that is put there now becomes a part of a graph */
    const char
        *closed; /* why no work can be put there, with the remedy; or NULL */
};

/* Make a stream's context current, and describe the stream.  known: the place of another
 * stream, to spare a call of the driver, or NULL.
 *
 * Errors:    COLL_ERR_INVALID (the legacy stream without a current context, a context
 *            that is gone), COLL_ERR_UNSUPPORTED (no driver), COLL_ERR_SYSTEM; logged;
 *            do not leave then.
 * Threads:   any; the same thread enters and leaves.
 */
int coll__cuda_enter(void *stream, const struct coll__cuda_place *known,
                     struct coll__cuda_place *place);
void coll__cuda_leave(void);

/* Return the current context if the stream is the legacy stream or the thread's, which
 * belong to it.  NULL if the stream is another, or no context is current. */
void *coll__cuda_here(void *stream);

/* Make a context current until coll__cuda_leave().  COLL_ERR_SYSTEM, logged. */
int coll__cuda_push(void *ctx);

/* Have drop(arg) called when the graph that is being captured on the stream, its copies
 * and its launches are all gone.  The stream's context is current.
 *
 * Result:    COLL_OK; or a status: then drop() is called too, at once or soon.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM; logged.
 * Threads:   any thread calls drop(), which must not call CUDA.
 */
int coll__cuda_hold(void *stream, void (*drop)(void *arg), void *arg);

#endif
