/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - operations that a device's stream comes to.
 *
 * Such a call enqueues its work and returns; the operation is done when the stream
 * has passed it.  calls.c checks the call, and programs.c enqueues its plan.
 * Operations of one communicator run in the order of their calls, whatever their
 * streams.  They match only each other, in a series and channels of their own.
 *
 * In lib/stream each call has a stream: the legacy stream, NULL, has another name here
 * (lib/device/cuda_stream.h).
 */
#ifndef COLL_LIB_STREAM_CALLS_H
#define COLL_LIB_STREAM_CALLS_H

#include "lib/device/cuda_stream.h"
#include "lib/plan/plan.h"
#include "lib/plan/view.h"
#include "lib/type/op.h"

#include <stdatomic.h>
#include <stdint.h>

struct coll__stage;
struct coll__stream_programs;
struct coll_comm;
struct coll_mem_stats;
struct coll_request;

/* A checked call; the caller owns its arrays. */
struct coll__stream_call {
    struct coll_args args;
    struct coll__problem pb;
    struct coll__op op;          /* of a reduction */
    int is_host[N_BUFS];  /* are BUF_IN and BUF_OUT pinned, and no device's? */
    uint64_t ids[N_BUFS]; /* of a device's: their allocations */
};

/* What the host carries (carry.h). */
struct coll__carry {
    int is_under_way,
        has_graphs; /* counted among what runs; the owner's, as the next */
    int is_over;
    atomic_int n_entering; /* batches that are being enqueued */
};

enum { KNOWN_BUFFERS = 16 };

/* The stream state of a communicator. */
struct coll__stream {
    /* From the first call on: the place of all streams, and the words by which runs
     * follow each other. */
    struct coll__cuda_place place;
    struct coll__stage *stage;
    uint64_t known
        [KNOWN_BUFFERS]; /* allocations that were used: as long as there is one
                                    * of them, the device was not reset */
    struct coll__stream_programs *programs; /* (programs.c) */
    char
        no_streams[256]; /* why its ranks' devices are not joined, or not all of
                           * them directly */
    struct coll__stream_tp
        *near; /* until the communicator is made: the devices that
                                   * reach each other, if not all do */
    int is_plain; /* the devices are not joined: from its first call on the host carries
                   * everything, through these slots */
    struct {
        int n_slots;
        size_t slot; /* bytes */
    } plain;
    struct coll__view gpu_view; /* how near the ranks' GPUs are; nranks 0:
                                 * the GPUs are not joined */
    struct coll__carry carry;
};

/* The work that is enqueued at once: a collective, or messages that travel side by
 * side. */
struct coll__batch {
    struct coll__stream_call *calls; /* [n] */
    int n;
    void *stream;
    struct coll__cuda_place place; /* of the stream */
    uint32_t ticket; /* names the batch for coll__programs_has_finished() */
};

/* What a rank lacks to have its device joined with the other ranks'. */
enum coll__lack {
    LACKS_BUILD,   /* its libcoll has no CUDA */
    LACKS_START,   /* its driver is too old, or did not start */
    LACKS_KERNELS, /* from here on the host carries everything */
    LACKS_DRIVER,  /* it may have one, and a context, by its first call */
    LACKS_CONTEXT,
    LACKS_NOTHING,
    N_LACKS
};

/* While the communicator is made: what does this rank lack?  Then, if no rank lacks
 * anything, join their devices; collective.  A status, logged. */
enum coll__lack coll__stream_lacks(void);
int coll__stream_join(struct coll_comm *comm);

/* Choose the slots of a communicator that may be plain, while it is made. */
void coll__stream_choose_plain(struct coll_comm *comm);

/* At this rank's first call in a communicator that is_plain, as owner: have the host carry
 * everything, and do all steps but copies; nothing is exchanged.  A status, logged. */
int coll__stream_join_plain(struct coll_comm *comm);

/* Once the communicator is made: if not all devices reach each other, the host carries
 * what is between these; collective.  A status, logged. */
int coll__stream_join_far(struct coll_comm *comm);

/* Free device memory that destroyed communicators left: to graphs that are gone since, or
 * to other ranks that have unmapped it since. */
void coll__stream_reclaim(void);

/* Look for devices if none was found so far; called before the first call of a
 * shape.  Costs about a microsecond then. */
void coll__stream_look_for_devices(void);

/* Does a buffer of the call lie on a device? */
int coll__stream_owns(const struct coll_args *args);

/* call: check and carry out a call outside groups.  check: only check a call.  run:
 * carry out all calls of a group on one communicator, which were compared before.  A
 * group's messages go first, since they do not wait for its collectives.  Statuses,
 * logged. */
int coll__stream_call(struct coll_comm *comm, const struct coll_args *args);
int coll__stream_check(struct coll_comm *comm, const struct coll_args *args);
int coll__stream_run(struct coll_comm *comm,
                     const struct coll_args *const calls[], int n);

/* A group is carried out when it ends, with maybe another context current than at its
 * calls.  here: return the current context if the call's stream belongs to it, else NULL.
 * enter: make that context current again, until leave.  A status, logged. */
void *coll__stream_here(const struct coll_args *args);
int coll__stream_enter(void *context);
void coll__stream_go(void *context);

/* Take the request that compares a group's call with the other ranks' calls, before
 * the call is run (compare.c).  The caller starts it, waits and puts it back.  NULL:
 * calls are not compared.  As owner. */
int coll__stream_compare(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request);

/* request: make a request for a call on a stream; it is freed as other requests are.
 * start: start it.  look: update its status.  wait: wait for its end. */
int coll__stream_request(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request);
int coll__stream_start(struct coll_request *request);
void coll__stream_look(struct coll_request *request);
void coll__stream_wait(struct coll_request *request, double timeout);

/* The communicator fails: release all streams of this rank that wait for other ranks,
 * also those in a captured graph.  Any thread, with failure.lock. */
void coll__stream_fail(struct coll_comm *comm, int status);

/* If another rank has released the streams, so that what they give means nothing, the
 * communicator fails here, too.  Asked after a stream has passed an operation, this tells
 * whether its results are right.  Any thread. */
void coll__stream_hear(struct coll_comm *comm);

/* As owner: wait until the host has done its part of all enqueued operations, and the
 * streams have passed those that they carry out alone.  COLL_OK, or the communicator's
 * failure. */
int coll__stream_drain(struct coll_comm *comm);

/* The communicator is about to be destroyed: stop watching its streams.
 * Idempotent. */
void coll__stream_leave(struct coll_comm *comm);

/* On the progress thread: check streams that make no progress, if a check is due. */
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

/* Free the stream state at the communicator's end; also in a child after fork(). */
void coll__stream_free(struct coll_comm *comm);

#endif
