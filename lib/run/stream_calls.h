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
    /* See whether there may be devices, if none was found so far: before a call
     * that is like none before.  Costs about a microsecond then. */
    void (*look_for_devices)(void);

    /* Does a buffer of the call lie on a device? */
    int (*owns)(const struct coll_args *args);

    /* Judge a call; carry one out that is in no group; carry out all that a group
     * has for one communicator, compared before.  Statuses, logged. */
    int (*check)(struct coll_comm *comm, const struct coll_args *args);
    int (*call)(struct coll_comm *comm, const struct coll_args *args);
    int (*run)(struct coll_comm *comm, const struct coll_args *const calls[],
               int n);

    /* The request by which the ranks compare a call of a group (COLL_CHECK), to be
     * started and waited for, then given to compared(); or NULL.  As owner. */
    int (*compare)(struct coll_comm *comm, const struct coll_args *args,
                   struct coll_request **request);
    void (*compared)(struct coll_request *request);

    /* A request for such a call: made, to be freed as others are; started; waited
     * for, by its status, which look() brings up to date. */
    int (*request)(struct coll_comm *comm, const struct coll_args *args,
                   struct coll_request **request);
    int (*start)(struct coll_request *request);
    void (*look)(struct coll_request *request);
    void (*wait)(struct coll_request *request, double timeout);

    /* Move on what the streams have come to.  COLL_OK, or the communicator's
     * failure.  As owner. */
    int (*move)(struct coll_comm *comm, int *moved);

    /* The communicator has failed: let streams that wait go on.  As owner. */
    void (*release)(struct coll_comm *comm);

    /* On the progress thread: look at streams that stand still, if it is time. */
    void (*watch)(void);

    /* The view that plans for the communicator's GPUs are priced on, or NULL. */
    const struct coll__view *(*view)(const struct coll_comm *comm);

    /* Let the other ranks read GPU memory in place, or (is_new 0) no longer.
     * Collective; a status, logged. */
    int (*enroll)(struct coll_comm *comm, const char *who, void *ptr,
                  size_t bytes, int is_new);

    /* Give back device memory that communicators left behind. */
    void (*reclaim)(void);

    /* Add this host's GPUs to its topology. */
    int (*describe)(struct coll__topo *topo);
};

/* NULL in a libcoll without CUDA (lib/api/attachments.c). */
extern const struct coll__stream_calls *const coll__stream_calls;

/* Is the call for a stream?  Where no driver is in the process this is a look at
 * one word. */
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

#endif
