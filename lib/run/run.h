/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - what lib/run keeps on a communicator: its owner, what runs, what is kept.
 *
 * All of it is the owner's (owner.h), but for the atomics, each of which says who else
 * uses it.
 */
#ifndef COLL_LIB_RUN_RUN_H
#define COLL_LIB_RUN_RUN_H

#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/exec/wait.h"
#include "lib/run/cache.h"
#include "lib/run/parts.h"

struct coll_request;

/* Who may move the communicator: owner.c. */
enum coll__owner { OWNER_NONE, OWNER_FREE, OWNER_TAKEN };

/* What has been started on a channel and has not ended, in that order.  Of
 * collectives the first one runs, alone; sends and receives all run. */
struct coll__queue {
    struct coll_request *first, **last;
    unsigned char *stage; /* allreduces that travel as one */
    size_t stage_len;
};

struct coll__run {
    /* Who owns the communicator: owner.c. */
    atomic_int owner; /* enum coll__owner */
    /* The thread that is within a caller's function for an operation of it; 0:
     * none is.  Relaxed: a thread looks for itself alone. */
    _Atomic(pthread_t) calling;
    atomic_int missed; /* somebody would have moved it, and sleeps now */
    int is_active;     /* it is in the active list; under owner.c's lock */
    struct coll_comm *next_active, **active_at; /* under that lock */
    _Atomic(struct coll_request *) submitted; /* by its caller; latest first */
    int has_thread; /* the caller's: 1 it has the progress thread, -1 that could
                     * not be made, 0 nobody has asked */

    /* What runs: progress.c. */
    struct coll__queue queues[COLL__CHANNELS];
    struct coll__ended ended; /* of sends and receives, by their requests */
    int n_running;            /* in all queues, and jobs of streams */
    int has_streams;          /* from the first call for one on */
    int n_streaming;          /* batches of streams that are under way */
    int n_captured; /* in graphs, each of which may begin at any time */
    int is_quiet;   /* the communicator failed, and its transports are closed */
    struct coll__wait wait;
    unsigned n_tests_idle;
    unsigned char token_in, token_out; /* a barrier's one byte */

    /* What is kept for the next calls. */
    struct coll__cache cache; /* of blocking calls */
    struct coll_request *own; /* the caller's, not destroyed yet */
    size_t *packed; /* [2 size]: displacements that a caller leaves out */
    struct coll__sorter sorter; /* of parts, when they are judged */
};

/* ---- progress.c; all as owner -------------------------------------------- */

/* Move what runs on.  COLL_OK, or the communicator's failure; *moved says
 * whether anything moved. */
int coll__run_progress(struct coll_comm *comm, int *moved);

/* The communicator failed: let its transports touch nobody's buffers any more
 * and end what runs.  Returns the failure. */
int coll__run_quiesce(struct coll_comm *comm);

/* What lib/run keeps on a communicator. */
extern const struct coll__attachment coll__run_attachment;

#endif
