/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_calls.h - the calls that lib/stream carries out, as a table.
 *
 * A call on device buffers, or with a stream, is put into the stream and returns; the
 * operation is done when the stream has passed it.  lib/run knows such calls by this
 * table alone, so that a libcoll without CUDA leaves lib/stream out.
 */
#ifndef COLL_LIB_RUN_STREAM_CALLS_H
#define COLL_LIB_RUN_STREAM_CALLS_H

#include "include/coll/coll.h"
#include "lib/device/device.h"

#include <stdatomic.h>

struct coll__topo;
struct coll__view;
struct coll_request;

struct coll__stream_calls {
    /* If no device was found so far, look again.  Called before a call of a new shape;
     * costs about a microsecond. */
    void (*look_for_devices)(void);

    /* Does a buffer of the call lie on a device? */
    int (*owns)(const struct coll_args *args);

    /* check: check a call's arguments.  call: carry out a call that is in no group.
     * run: carry out all calls of a group for one communicator, after they were
     * compared.  Each returns a status, logged. */
    int (*check)(struct coll_comm *comm, const struct coll_args *args);
    int (*call)(struct coll_comm *comm, const struct coll_args *args);
    int (*run)(struct coll_comm *comm, const struct coll_args *const calls[],
               int n);

    /* here: return the current context if the call's stream is the legacy stream or the
     * thread's, which belong to it; else NULL.  enter: make such a context current
     * until leave(); NULL changes nothing.  A status, logged. */
    void *(*here)(const struct coll_args *args);
    int (*enter)(void *context);
    void (*leave)(void *context);

    /* Make the request by which the ranks compare a call of a group (COLL_CHECK), or
     * NULL.  The caller starts it, waits for it and passes it to compared().  As
     * owner. */
    int (*compare)(struct coll_comm *comm, const struct coll_args *args,
                   struct coll_request **request);
    void (*compared)(struct coll_request *request);

    /* request: make a request for a stream call; it is freed as others are.  start:
     * start it.  look: update its status.  wait: wait for its end, at most `timeout`
     * s. */
    int (*request)(struct coll_comm *comm, const struct coll_args *args,
                   struct coll_request **request);
    int (*start)(struct coll_request *request);
    void (*look)(struct coll_request *request);
    void (*wait)(struct coll_request *request, double timeout);

    /* Move the operations that streams have reached.  COLL_OK, or the communicator's
     * failure.  As owner. */
    int (*move)(struct coll_comm *comm, int *moved);

    /* The communicator has failed: release the streams that wait for it.  As owner. */
    void (*release)(struct coll_comm *comm);

    /* On the progress thread: check streams that make no progress, if a check is
     * due. */
    void (*watch)(void);

    /* Return the view that plans for the communicator's GPUs are priced on, or NULL. */
    const struct coll__view *(*view)(const struct coll_comm *comm);

    /* Register GPU memory, which the other ranks may then read in place; or, with
     * is_new 0, end the registration.  Collective; a status, logged. */
    int (*enroll)(struct coll_comm *comm, const char *who, void *ptr,
                  size_t bytes, int is_new);

    /* Free device memory that destroyed communicators left behind. */
    void (*reclaim)(void);

    /* Return this thread's current context, or NULL; for enter() in another thread. */
    void *(*context)(void);

    /* Add this host's GPUs to its topology. */
    int (*describe)(struct coll__topo *topo);
};

/* NULL in a libcoll without CUDA (lib/api/attachments.c). */
extern const struct coll__stream_calls *const coll__stream_calls;

/* Is the call for a stream?  In a process without a CUDA driver this only reads one
 * word. */
static inline int coll__is_stream_call(const struct coll_args *args)
{
    return args->stream ||
           (__builtin_expect(atomic_load_explicit(&coll__device_is_here,
                                                  memory_order_relaxed),
                             0) &&
            coll__stream_calls && coll__stream_calls->owns(args));
}

/* COLL_ERR_UNSUPPORTED, logged, if this libcoll has no CUDA; else COLL_OK. */
int coll__stream_calls_there(const struct coll_args *args);

static inline void coll__look_for_devices(void)
{
    if (coll__stream_calls)
        coll__stream_calls->look_for_devices();
}

/* Is the call for a stream, now that devices have been looked for again? */
static inline int coll__is_streams_after_all(const struct coll_args *args)
{
    coll__look_for_devices();
    return coll__is_stream_call(args);
}

#endif
