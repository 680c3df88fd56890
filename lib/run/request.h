/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - an operation that can be started: its program and its state. */
#ifndef COLL_LIB_RUN_REQUEST_H
#define COLL_LIB_RUN_REQUEST_H

#include "lib/comm/awaited.h"
#include "lib/plan/plan.h"
#include "lib/run/own_op.h"
#include "lib/type/op.h"

#include <stdatomic.h>

struct coll__agreement;
struct coll__algo;
struct coll__prog;
struct coll_comm;

/* One of several operations that travel as one. */
struct coll__part {
    const void *in;
    void *out;
    size_t len; /* bytes */
    struct coll__part *next;
};

/* Who made a request, and what begins with it. */
enum coll__request_kind {
    REQUEST_SINGLE, /* made for one call or for the caller */
    REQUEST_KEPT,   /* struct coll__kept_request (cache.c) */
    REQUEST_STREAM, /* struct stream_request (lib/stream/calls.c); without a program */
    REQUEST_TAGGED, /* struct coll__tagged_request (tagged.c); without a program */
};

struct coll_request {
    enum coll__request_kind kind;
    struct coll__call call; /* call.sig.seq is set at each start */
    struct coll_args args;
    /* The status of the last start; COLL_IN_PROGRESS while it runs.  The owner stores
     * it with release, after everything else about the operation. */
    atomic_int status;
    struct coll_request *own_next, **own_at; /* among the caller's */
    /* Of a request in any order (any_order.c), or NULL. */
    struct coll__agreement *agreement;

    /* The program and what it is for. */
    struct coll__problem problem; /* its counts are in `numbers` */
    size_t *numbers;
    struct coll__prog *prog;
    const char *algorithm;  /* the plan's */
    size_t tmp_len;         /* of scratch, its own or lent */
    size_t in_len, out_len; /* bytes of the buffers */
    struct coll__own_op own_op;
    int channel;
    int is_plain; /* for a call of this shape only the buffers' addresses need a
                   * check */

    /* While it runs. */
    struct coll__part *parts;  /* to be copied to the stage and back, or NULL */
    struct coll_request *next; /* started or submitted after it */
    struct coll_request **queued_at; /* in its queue */
    double called, begun; /* on the clock, while something is traced */
};

/* Return the series of a call.  Every stream has a non-NULL handle here, the legacy
 * default stream too (lib/device/cuda_stream.h). */
static inline enum coll__series coll__series_of(const struct coll_args *args)
{
    if (args->any_order)
        return SERIES_ANY_ORDER;
    return args->stream ? SERIES_COMPARED : SERIES_HOST;
}

/* ---- request.c ----------------------------------------------------------- */

/* Copy a problem's arrays into *numbers, which the caller frees; NULL if the problem
 * has no arrays.  COLL_OK or COLL_ERR_NOMEM, not logged. */
int coll__request_numbers(struct coll__problem *pb, size_t **numbers);

/* Return the signature of the problem's operation, without its number. */
struct coll__signature coll__request_signature(const struct coll__problem *pb,
                                               const struct coll__op *op,
                                               enum coll__series series);

/* Write the signature of its operation into the request, without the number, and with
 * the algorithm id unless each rank may choose its own algorithm. */
void coll__request_stamp(struct coll_request *request,
                         const struct coll__op *op);

/* Choose the algorithm for a call, and log it for COLL_LOG=plan:debug.  A status,
 * logged. */
int coll__request_choose(const struct coll_comm *comm,
                         const struct coll_args *args,
                         const struct coll__problem *pb,
                         const struct coll__algo **algo);

/* Complete a request, of which only the kind is set and all else 0, for a problem that
 * coll__args_check() has made of args; the problem's arrays are copied.  Scratch is its
 * own, or, for REQUEST_KEPT, lent (coll__prog_lend()) before each start.  Logged; after
 * an error nothing is to be freed but the request itself. */
int coll__request_init(struct coll_request *request, struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb);

/* Free a request of any kind that does not run. */
void coll__request_free(struct coll_request *request);

/* The bytes of all that it holds but scratch; 0 for one without a program. */
size_t coll__request_bytes(const struct coll_request *request);

/* Build the plan for a call; *seconds is its predicted time, 0 for a plan of
 * COLL_PLAN_FILE.  The plan is the caller's, to end by coll__plan_fini().  A status,
 * logged. */
int coll__request_plan(const struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb, struct coll__plan *plan,
                       double *seconds);

/* Make a request for the caller.  Destroy one that has ended.  As owner; a status,
 * logged. */
int coll__request_create(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request);
int coll__request_destroy(struct coll_request *request);

/* Free the caller's request in a forked child. */
void coll__request_abandon(struct coll_request *request);

/* Free the requests that the caller has not destroyed; also in a child. */
void coll__requests_forget_own(struct coll_comm *comm);

/* Return the channel of a problem's messages, the same on every rank. */
int coll__channel_of(const struct coll_comm *comm,
                     const struct coll__problem *pb, enum coll__series series);

/* ---- progress.c; all as owner -------------------------------------------- */

/* Queue a request that is not running.  It begins when its channel is free. */
int coll__request_start(struct coll_request *request);

/* While nothing else runs: begin a collective of the listed engine without the queue, and
 * carry it out as far as possible without waiting.  Returns its status.  After
 * COLL_IN_PROGRESS the request must be queued by coll__request_queue(). */
int coll__request_start_alone(struct coll_request *request);
void coll__request_queue(struct coll_request *request);

/* The opposite: take a request out of its queue. */
void coll__request_unqueue(struct coll_request *request);

/* As coll__request_start(), also for a message with a tag and for a request in any
 * order. */
int coll__request_start_any(struct coll_request *request);

/* The request was started on a communicator that has failed: end it.  Returns its
 * status. */
int coll__request_fail(struct coll_request *request);

/* A send or receive in a queue has ended with this status. */
void coll__request_end(struct coll_request *request, int status);

/* Wait until the request has ended, and move all others meanwhile.  Returns its
 * status. */
int coll__request_wait(struct coll_request *request, double timeout);

/* Nothing moved in a wait for the request: check whether that is a stall, as
 * coll__stall_check().  COLL_OK, or the communicator's failure. */
int coll__request_check_stall(struct coll_request *request, double timeout,
                              int is_blocked);

/* ---- launch.c: for the caller's own requests, without owning the communicator -- */

/* As coll__request_status(); of one that has failed this thread's last error is set. */
int coll__request_result(const struct coll_request *request);

/* launch: start the request, or submit it to a thread that starts it sooner.  test:
 * move it without waiting.  finish: wait for it, at most `timeout` s.  launch returns a
 * status, the others return the request's status. */
int coll__request_launch(struct coll_request *request);
int coll__request_test(struct coll_request *request);
int coll__request_finish(struct coll_request *request, double timeout);

/* Return the request's status; any thread. */
static inline int coll__request_status(const struct coll_request *request)
{
    return atomic_load_explicit(&request->status, memory_order_acquire);
}

#endif
