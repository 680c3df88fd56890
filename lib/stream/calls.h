/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - operations that a device's stream comes to.
 *
 * Such a call puts what it takes into the stream and returns; the operation is
 * done when the stream has passed it.  stream.c judges the call and chooses a
 * path by which it is carried out.  Operations of one communicator go in
 * the order of their calls, whatever their streams; they match among themselves,
 * by a series and channels of their own.
 *
 * In here a call always has a stream: NULL, the legacy one, has another name then
 * (lib/device/cuda_stream.h).
 */
#ifndef COLL_LIB_STREAM_CALLS_H
#define COLL_LIB_STREAM_CALLS_H

#include "lib/run/request.h"

#include <stdatomic.h>

struct coll__levels;
struct coll__queued_list;
struct coll__streams;
struct coll__subcomms;

/* What lib/stream keeps on a communicator. */
struct coll__stream {
    struct coll__streams *staged;       /* from the first call on (staged.h) */
    struct coll__queued_list *programs; /* for streams (programs.c) */
    char no_streams[256];       /* why its ranks' devices are not joined */
    int has_devices;            /* each rank has one; there are several hosts */
    struct coll__view gpu_view; /* who is near whom by their GPUs; nranks 0:
                                   * these are not joined */
    struct coll__levels *levels; /* by which streams go on several hosts */
    /* Its sub-communicators, or those that it is one of, or NULL. */
    _Atomic(struct coll__subcomms *) subcomms;
};

/* What the caller's thread puts into a stream at once: a collective, or messages
 * that travel side by side. */
struct coll__batch {
    struct coll__stream_call *calls; /* [n] */
    int n;
    void *stream;
    int is_captured; /* what is put there becomes a part of a graph */
    uint32_t ticket; /* by which it is asked for: has_finished() */
};

/* One way to carry them out. */
struct coll__path {
    const char *name;
    int is_watched; /* deadlines of the communicator's are kept (watch.h) */

    /* Can it?  The last one of all can.  All ranks come to the same answer. */
    int (*serves)(const struct coll_comm *comm,
                  const struct coll__batch *batch);

    /* Put it into the stream, whose context is current.  COLL_OK and its ticket;
     * or a status, logged: nothing was put there, or the communicator failed. */
    int (*enqueue)(struct coll_comm *comm, struct coll__batch *batch);

    /* Has the stream passed the batch of that ticket?  Any thread. */
    int (*has_finished)(const struct coll_comm *comm, uint32_t ticket);
};

extern const struct coll__path coll__path_queued, coll__path_levels,
    coll__path_staged;

/* What a rank lacks to have its device joined with the other ranks'. */
enum coll__lack {
    LACKS_BUILD, /* its libcoll has no CUDA */
    LACKS_NOTHING,
    LACKS_KERNELS, /* nor kernels */
    LACKS_WISH,    /* COLL_CUDA_ENGINE=staged */
    LACKS_DRIVER,
    LACKS_START, /* it is too old, or did not start */
    LACKS_CONTEXT,
    N_LACKS
};

/* While the communicator is made: what does this rank's thread lack?  Then, where no
 * rank of one host lacks anything, join their devices; collective.  A status, logged. */
enum coll__lack coll__stream_lacks(void);
int coll__stream_join(struct coll_comm *comm);

/* Once it is made, where no rank of several hosts lacks anything: join the devices of
 * each host (levels.c); collective.  A status, logged. */
int coll__stream_join_hosts(struct coll_comm *comm);

/* Give back device memory that communicators left behind, where the other ranks have let
 * go of it since. */
void coll__stream_reclaim(void);

/* See whether there may be devices, where nobody has found any so far: before a
 * call that is like none before.  Costs about a microsecond then. */
void coll__stream_look_for_devices(void);

/* Does a buffer of the call lie on a device? */
int coll__stream_owns(const struct coll_args *args);

/* Put a call that another communicator's is made of into the stream; nobody compares
 * it.  A status, logged. */
int coll__stream_put(struct coll_comm *comm, const struct coll_args *args);

/* The same of nothing: what the stream was given before is not the communicator's, and
 * no part of what its next call waits for (watch.h); for `what`.  Not in a capture. */
int coll__stream_pass(struct coll_comm *comm, const char *what, void *stream);

/* Carry out a call, of no group; or judge it alone; or all that a group has for
 * one communicator, compared before: the messages first, since they go beside the
 * collectives.  Statuses, logged. */
int coll__stream_call(struct coll_comm *comm, const struct coll_args *args);
int coll__stream_check(struct coll_comm *comm, const struct coll_args *args);
int coll__stream_run(struct coll_comm *comm,
                     const struct coll_args *const calls[], int n);

/* Of a call of a group, before it is run: the request by which the ranks compare it,
 * to be started, waited for and put back (compare.c); or NULL, they do not.  With
 * the turn. */
int coll__stream_compare(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request);

/* A request for such a call: made, to be freed as others are; started; waited for,
 * by its status, which look() brings up to date. */
int coll__stream_request(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request);
int coll__stream_start(struct coll_request *request);
void coll__stream_look(struct coll_request *request);
void coll__stream_wait(struct coll_request *request, double timeout);

/* As owner: move on what the streams have come to.  COLL_OK, or the
 * communicator's failure. */
int coll__stream_move(struct coll_comm *comm, int *moved);

/* From any thread, with failure.lock: the communicator fails, and no stream of this
 * rank is to wait for another one's, be it in a graph that was captured. */
void coll__stream_fail(struct coll_comm *comm, int status);

/* As owner of a communicator that has failed: let streams that wait go on. */
void coll__stream_release(struct coll_comm *comm);

/* As owner: wait until the host has done its part of all that the streams
 * have been given, and they theirs of what they carry out alone.  COLL_OK, or the
 * communicator's failure. */
int coll__stream_drain(struct coll_comm *comm);

/* The communicator is going to leave: nobody looks at its streams any more.
 * Idempotent. */
void coll__stream_leave(struct coll_comm *comm);

/* On the progress thread: look at streams that stand still, if it is time. */
void coll__watch_look(void);

extern atomic_int coll__watch_n __attribute__((visibility("hidden")));

static inline void coll__stream_watch(void)
{
    if (atomic_load_explicit(&coll__watch_n, memory_order_relaxed))
        coll__watch_look();
}

/* Let the other ranks read GPU memory in place, or (is_new 0) no longer (enroll.c).
 * Collective; a status, logged. */
int coll__stream_enroll(struct coll_comm *comm, const char *who, void *ptr,
                        size_t bytes, int is_new);

/* Add what it holds for streams. */
void coll__stream_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats);

/* Free all of it, the communicator ends; also in a child. */
void coll__stream_free(struct coll_comm *comm);

#endif
