/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - an operation that can be started: its program and its state. */
#ifndef COLL_LIB_RUN_REQUEST_H
#define COLL_LIB_RUN_REQUEST_H

#include "lib/comm/stall.h"
#include "lib/run/run.h"

struct coll__path;

/* One of several operations that travel as one. */
struct coll__part {
    const void *in;
    void *out;
    size_t len; /* bytes */
    struct coll__part *next;
};

struct coll_request {
    struct coll__call call; /* call.sig.seq is set at each start */
    struct coll_args args;
    struct coll__problem problem; /* its counts are in `numbers` */
    size_t *numbers;
    struct coll__prog *prog;
    size_t tmp_len;         /* of scratch, its own or lent */
    size_t in_len, out_len; /* bytes of the buffers */
    struct coll__op own_op; /* the caller's function, where it has one */
    int channel;
    int is_plain; /* all that there is to judge about a call like it is where
                   * its buffers lie */
    /* Of the last start; COLL_IN_PROGRESS while it runs.  The owner stores it with
     * release, as the last thing that is done about the operation. */
    atomic_int status;
    struct coll__part *parts;  /* to be copied to the stage and back, or NULL */
    struct coll_request *next; /* started, submitted or idle after it */
    struct coll_request **queued_at; /* in its queue, while it runs */
    /* Of one that is kept (cache.h): what it is found by, its place, whether a
     * call has taken it, whether it was used again; its scratch then. */
    const char *algorithm; /* the plan's; and when it was started, and began: */
    double called, begun;  /* on the clock, while something is traced */
    uint64_t hash;
    size_t at, bytes;
    int is_kept, is_idle, is_used;
    struct coll__scratch *scratch;
    /* Of a stream's: what started it, and by which ticket it is asked for. */
    int is_streams;
    const struct coll__path *path;
    uint32_t ticket;
    struct coll_request *own_next, **own_at; /* among the caller's */
};

/* Of a call; what a stream comes to names it, be it the legacy one
 * (lib/device/cuda_stream.h). */
static inline enum coll__series coll__series_of(const struct coll_args *args)
{
    return args->stream ? SERIES_STREAM : SERIES_HOST;
}

/* ---- request.c ----------------------------------------------------------- */

/* Give a problem arrays of its own, in *numbers, the caller's to free; none where it
 * has none.  COLL_OK or COLL_ERR_NOMEM, not logged. */
int coll__request_numbers(struct coll__problem *pb, size_t **numbers);

/* What names the problem's operation, but for its number. */
struct coll__signature coll__request_signature(const struct coll__problem *pb,
                                               const struct coll__op *op,
                                               enum coll__series series);

/* Stamp the request with what names its operation, but for the number, and with its
 * algorithm where ranks may not choose for themselves. */
void coll__request_stamp(struct coll_request *request,
                         const struct coll__op *op);

/* The algorithm for a call; a status, logged. */
int coll__request_choose(const struct coll_comm *comm,
                         const struct coll_args *args,
                         const struct coll__problem *pb,
                         const struct coll__algo **algo);

/* Make a request for a problem that coll__args_check() has made of args; the
 * problem's arrays are copied.  Scratch is its own, or lent (coll__prog_lend())
 * before each start.  op: what args->op was, if it may be that no more; or NULL.
 * Logged. */
int coll__request_make(struct coll_comm *comm, const struct coll_args *args,
                       const struct coll__problem *pb, int is_lent_scratch,
                       const struct coll__op *op,
                       struct coll_request **request);
void coll__request_free(struct coll_request *request);

/* Build the plan for a call; *seconds is its predicted time, 0 for a plan of
 * COLL_PLAN_FILE.  The plan is the caller's, to end by coll__plan_fini().  A status,
 * logged. */
int coll__request_plan(const struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb, struct coll__plan *plan,
                       double *seconds);

/* Make a request for the caller, of the problem that coll__args_check() has made of
 * args, or, pb NULL, of a call for a stream; destroy one that has ended.  As owner;
 * statuses, logged. */
int coll__request_create(struct coll_comm *comm, const struct coll_args *args,
                         const struct coll__problem *pb,
                         struct coll_request **request);
int coll__request_destroy(struct coll_request *request);

/* Free the caller's request, in a child of the process that made it. */
void coll__request_abandon(struct coll_request *request);

/* Free the caller's requests that are left; also in a child. */
void coll__requests_forget_own(struct coll_comm *comm);

/* The channel of a problem's messages, the same on every rank. */
int coll__channel_of(const struct coll_comm *comm,
                     const struct coll__problem *pb, enum coll__series series);

/* ---- progress.c; all as owner -------------------------------------------- */

/* Queue the request, which does not run; it begins when the channel is free. */
int coll__request_start(struct coll_request *request);

/* Begin a collective that runs as listed while nothing else runs, and carry it
 * out as far as it goes at once.  Its status; if that is COLL_IN_PROGRESS, it
 * must join the queue. */
int coll__request_dash(struct coll_request *request);
void coll__request_join(struct coll_request *request);

/* Wait until it is done, and move all others meanwhile; its status. */
int coll__request_wait(struct coll_request *request, double timeout);

/* Nothing moved in a wait for the request: check whether that is a stall, as
 * coll__stall_check().  COLL_OK, or the communicator's failure. */
int coll__request_check_stall(struct coll_request *request, double timeout,
                              int is_blocked);

/* ---- for the caller's own requests, without owning the communicator -------- */

/* Start it, or leave that to a thread that does it sooner; move it on, without
 * waiting; wait for it, timeout s at most.  Each returns a status, the last two the
 * request's. */
int coll__request_launch(struct coll_request *request);
int coll__request_test(struct coll_request *request);
int coll__request_finish(struct coll_request *request, double timeout);

/* Return the request's status; any thread. */
static inline int coll__request_status(const struct coll_request *request)
{
    return atomic_load_explicit(&request->status, memory_order_acquire);
}

#endif
