/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - what lib/run keeps on a communicator: its owner, what runs, what is kept.
 *
 * Only the owner (owner.h) uses these fields, except the atomics, whose comments say
 * who else does.
 */
#ifndef COLL_LIB_RUN_RUN_H
#define COLL_LIB_RUN_RUN_H

#include "lib/exec/wait.h"
#include "lib/run/cache.h"
#include "lib/run/parts.h"

#include <pthread.h>
#include <stdatomic.h>

struct coll__any_order;
struct coll__attachment;
struct coll__tagged_request;
struct coll__tags;
struct coll_comm;
struct coll_request;

/* Who may move the communicator: owner.c. */
enum coll__owner { OWNER_NONE, OWNER_FREE, OWNER_TAKEN };

/* What else than programs moves. */
enum coll__more {
    RUN_HAS_STREAMS = 1,
    RUN_HAS_TAGS = 2,
    RUN_HAS_ANY_ORDER = 4
};

/* The operations of a channel that were started and have not ended, in order.  Only the
 * first collective runs; sends and receives all run. */
struct coll__queue {
    struct coll_request *first, **last;
    unsigned char *stage; /* allreduces that travel as one */
    size_t stage_len;
};

struct coll__run {
    /* Who owns the communicator: owner.c. */
    atomic_int owner; /* enum coll__owner */
    /* The thread that runs a caller's function (coll_op_create_user()) for this
     * communicator; 0: none.  Relaxed, since each thread only compares it with
     * itself. */
    _Atomic(pthread_t) calling;
    atomic_int missed; /* a thread wanted to move it, and sleeps now */
    int is_active;     /* it is in the active list; under owner.c's lock */
    struct coll_comm *next_active, **active_at; /* under that lock */
    _Atomic(struct coll_request *) submitted; /* by its caller; latest first */
    /* 1: it uses the progress thread; -1: that could not be started; 0: not tried.  For
     * the caller only */
    int has_thread;

    /* What runs: progress.c. */
    struct coll__queue queues[COLL__CHANNELS];
    struct coll__ended ended; /* of sends and receives, by their requests */
    int n_running;            /* in all queues */
    unsigned has_more;        /* enum coll__more, from the first such call on */
    int n_streaming;          /* batches of streams that are under way */
    int n_captured; /* in graphs, each of which may begin at any time */
    int is_quiet;   /* the communicator failed, and its transports are closed */
    struct coll__wait wait;
    unsigned n_tests_idle;
    unsigned char token[2];  /* a barrier's one byte, in and out */
    struct coll__tags *tags; /* messages with tags, from the first one on */
    /* Requests in any order, from the first one on.  Any thread reads it. */
    _Atomic(struct coll__any_order *) any_order;

    /* What is kept for the next calls. */
    struct coll__cache cache; /* of blocking calls */
    struct coll_request *own; /* the caller's, not destroyed yet */
    struct coll__tagged_request *idle_tagged; /* of blocking calls */
    size_t *packed; /* [2 size]: displacements that a caller leaves out */
    struct coll__sorter sorter; /* of parts, when they are judged */
};

/* Does an operation run, or may a launched graph start one? */
static inline int coll__run_has_work(const struct coll__run *run)
{
    return run->n_running || run->n_streaming || run->n_captured;
}

/* ---- progress.c; all as owner -------------------------------------------- */

/* Move the running operations.  COLL_OK, or the communicator's failure; *moved says
 * whether there was progress. */
int coll__run_progress(struct coll_comm *comm, int *moved);

/* The communicator failed: stop its transports, so that they touch no buffer any more,
 * and end the running operations.  Returns the failure. */
int coll__run_quiesce(struct coll_comm *comm);

/* A transfer of this rank's call has ended with that status.  The communicator's failure,
 * or COLL_OK while the cause is not known yet. */
int coll__run_failed(struct coll_comm *comm, const struct coll__signature *call,
                     const struct coll__xfer *xfer, int status);

/* What lib/run keeps on a communicator. */
extern const struct coll__attachment coll__run_attachment;

#endif
