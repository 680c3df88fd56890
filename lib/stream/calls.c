/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - calls for a device's stream: each is checked (check_calls.c) and enqueued
 * (programs.c). */
#include "lib/comm/comm.h"
#include "lib/device/cuda_stage.h"
#include "lib/comm/fail.h"
#include "lib/run/owner.h"
#include "lib/run/args.h"
#include "lib/run/request.h"
#include "lib/stream/calls.h"
#include "lib/stream/carry.h"
#include "lib/stream/programs.h"
#include "lib/stream/check_calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "lib/algo/algo.h"

#include <stdlib.h>
#include <string.h>

#define LATER 2 /* timeouts; by then the watch has reported, which knows more */

static const char *name_of(const struct coll_args *args)
{
    return coll_collective_name(args->collective);
}

/* ---- the communicator's part -------------------------------------------------- */

/* Create the state at the first call; the stage exists before anything waits on it. */
static int have_streams(struct coll_comm *comm, const char *what,
                        const struct coll__cuda_place *place)
{
    struct coll__stage *stage;
    int rc = coll__comm_need_thread(comm, what);

    if (rc || comm->stream->stage)
        return rc;
    if (!comm->links.routes.streams && !comm->stream->is_plain) {
        log_error("api", "%s: GPU buffers cannot be used here: %s", what,
                  comm->stream->no_streams);
        return COLL_ERR_UNSUPPORTED;
    }
    rc = coll__stage_take(place->ctx, 0, &stage);
    if (rc)
        return rc;
    coll__owner_acquire(comm);
    if (!comm->links.routes.streams)
        rc = coll__stream_join_plain(comm);
    if (rc == COLL_OK) {
        comm->stream->place = *place;
        comm->stream->stage = stage;
        comm->run->has_more |= RUN_HAS_STREAMS;
        comm->holds_device = 1;
    }
    coll__owner_release(comm);
    if (rc)
        coll__stage_put(stage);
    return rc;
}

void coll__stream_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats)
{
    coll__programs_bytes(comm, stats);
}

void coll__stream_free(struct coll_comm *comm)
{
    /* In a child after fork(): another thread may have been using it, so it is kept, not
     * freed. */
    static struct coll__stage *volatile inherited;
    struct coll__stage *stage = comm->stream->stage;

    coll__programs_free(comm);
    if (coll__comm_is_inherited(comm)) {
        inherited = stage;
        (void)inherited;
    } else if (stage) {
        coll__stage_put(stage);
    }
    comm->stream->stage = NULL;
}

void coll__stream_leave(struct coll_comm *comm)
{
    coll__programs_leave(comm);
    coll__carry_release(comm);
}

/* Return the number up to which the streams of comm have finished.  While it changes,
 * there is progress. */
static uint32_t come_to(const struct coll_comm *comm)
{
    const struct coll__stage *stage = comm->stream->stage;

    return stage ? atomic_load_explicit(coll__stage_word(stage, STAGE_FINISHED),
                                        memory_order_relaxed)
                 : 0;
}

static int is_drained(const struct coll_comm *comm)
{
    return !comm->run->n_streaming && !coll__programs_is_behind(comm);
}

/* The watch (watch.h) knows which ranks are missing in operations that streams carry
 * out alone, so it reports first and this deadline is later.  But the watch cannot
 * report an operation that the stream has not reached. */
static int drain_late(struct coll_comm *comm, double waited)
{
    double most =
        comm->run->n_streaming ? comm->timeout : LATER * comm->timeout;

    if (waited <= most)
        return COLL_OK;
    coll__comm_fail(comm, COLL_ERR_TIMEOUT,
                    "rank %d's streams did not reach all operations enqueued "
                    "in them within %g s; see what they wait for",
                    comm->rank, most);
    return coll__run_quiesce(comm);
}

int coll__stream_drain(struct coll_comm *comm)
{
    double since = coll__now();
    uint32_t seen = come_to(comm);
    int moved, rc = COLL_OK;

    coll__carry_drain(comm);
    while (rc == COLL_OK && !is_drained(comm)) {
        rc = coll__run_progress(comm, &moved);
        if (moved || coll__active_move())
            coll__wait_moved(&comm->run->wait);
        else
            coll__wait_idle(&comm->run->wait, 0);
        if (moved || come_to(comm) != seen) {
            seen = come_to(comm);
            since = coll__now();
        }
        if (rc == COLL_OK)
            rc = drain_late(comm, coll__now() - since);
    }
    coll__stream_hear(comm);
    return rc ? rc : coll__comm_status(comm); /* which may have released them */
}

/* ---- calls -------------------------------------------------------------------- */

/* Would the batch wait for ever: is it a single message of a rank to itself?  The send
 * and the receive of such a message must be in one batch. */
static int is_endless(const struct coll_comm *comm,
                      const struct coll__batch *batch)
{
    const struct coll_args *args = &batch->calls[0].args;

    return batch->n == 1 && coll__is_p2p(args->collective) &&
           args->root == comm->rank;
}

/* A device's failure is permanent, so fail the communicator on all ranks. */
static int device_status(struct coll_comm *comm, int rc)
{
    return rc == COLL_ERR_SYSTEM
               ? coll__comm_fail(comm, rc, "%s", coll_last_error())
               : rc;
}

static int enqueue(struct coll_comm *comm, struct coll__batch *batch)
{
    struct coll_args *args = &batch->calls[0].args;
    struct coll__cuda_place *place = &batch->place;
    int rc = coll__comm_status(comm);

    if (rc == COLL_OK)
        rc = device_status(
            comm, coll__cuda_enter(batch->stream, &comm->stream->place, place));
    if (rc)
        return rc;
    if (place->closed)
        rc = coll__args_wrong(args, place->closed);
    for (int i = 0; i < batch->n && rc == COLL_OK; i++)
        rc = coll__stream_judge(comm, &batch->calls[i], place);
    if (rc == COLL_OK && is_endless(comm, batch))
        rc = coll__args_wrong(
            args, "a message of a rank to itself would wait for ever; call the "
                  "matching send or receive in the same group");
    if (rc == COLL_OK)
        rc = have_streams(comm, name_of(args), place);
    if (rc == COLL_OK)
        rc = coll__carry_enter(comm, batch);
    if (rc == COLL_OK) {
        rc = device_status(comm, coll__programs_enqueue(comm, batch));
        coll__carry_leave(comm);
    }
    coll__cuda_leave();
    return rc;
}

static int enqueue_one(struct coll_comm *comm, const struct coll_args *args,
                       uint32_t *ticket)
{
    struct coll__stream_call call = {.args = *args};
    struct coll__batch batch = {
        .calls = &call, .n = 1, .stream = coll__stream_of(args)};
    int rc;

    call.args.stream = batch.stream;
    rc = enqueue(comm, &batch);
    *ticket = batch.ticket;
    return rc;
}

int coll__stream_call(struct coll_comm *comm, const struct coll_args *args)
{
    uint32_t ticket;
    int rc = coll__owner_refuses(comm->run, name_of(args));

    if (rc == COLL_OK)
        rc = coll__stream_compare_call(comm, args);
    return rc ? rc : enqueue_one(comm, args, &ticket);
}

/* ---- groups --------------------------------------------------------------------- */

static int add_message(struct coll__batch *batch, const struct coll_args *args)
{
    struct coll__stream_call *call = &batch->calls[batch->n];

    if (batch->n && batch->stream != coll__stream_of(args))
        return coll__args_wrong(args,
                                "the sends and receives of a group need one "
                                "stream for all of a communicator");
    *call = (struct coll__stream_call){.args = *args};
    call->args.stream = batch->stream = coll__stream_of(args);
    batch->n++;
    return COLL_OK;
}

static int run_messages(struct coll_comm *comm,
                        const struct coll_args *const calls[], int n)
{
    struct coll__batch batch = {.calls =
                                    malloc((size_t)n * sizeof(*batch.calls))};
    int rc = COLL_OK;

    if (!batch.calls) {
        log_error("api", "no memory for a group of %d operations", n);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n && rc == COLL_OK; i++)
        if (coll__is_p2p(calls[i]->collective))
            rc = add_message(&batch, calls[i]);
    if (rc == COLL_OK && batch.n)
        rc = enqueue(comm, &batch);
    free(batch.calls);
    return rc;
}

int coll__stream_run(struct coll_comm *comm,
                     const struct coll_args *const calls[], int n)
{
    uint32_t ticket;
    int rc = run_messages(comm, calls, n);

    for (int i = 0; i < n && rc == COLL_OK; i++)
        if (!coll__is_p2p(calls[i]->collective))
            rc = enqueue_one(comm, calls[i], &ticket);
    return rc;
}

void *coll__stream_here(const struct coll_args *args)
{
    return coll__cuda_here(coll__stream_of(args));
}

int coll__stream_enter(void *context)
{
    return context ? coll__cuda_push(context) : COLL_OK;
}

void coll__stream_go(void *context)
{
    if (context)
        coll__cuda_leave();
}

/* ---- requests --------------------------------------------------------------------- */

/* Copy what the request reads at each start. */
static int keep(struct coll_request *request, const struct coll_args *args)
{
    const struct coll__algo *algo;

    request->args = *args;
    if (args->algo && *args->algo) {
        algo = coll__algo_find(args->collective, args->algo);
        if (!algo)
            return coll__args_wrong(args,
                                    "there is no such algorithm; "
                                    "coll_plan_candidate() names those that "
                                    "there are");
        request->args.algo = algo->name;
    }
    request->args.stream = coll__stream_of(args);
    return coll__args_keep(&request->args, request->call.comm,
                           &request->numbers);
}

/* A request for a stream, and the ticket of its last start. */
struct stream_request {
    struct coll_request request; /* first, so that the two pointers are equal */
    uint32_t ticket;
};

static struct stream_request *of_stream(struct coll_request *request)
{
    return (struct stream_request *)request;
}

int coll__stream_request(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **out)
{
    struct stream_request *new;
    int rc = coll__stream_check(comm, args);

    if (rc)
        return rc;
    new = calloc(1, sizeof(*new));
    if (!new) {
        log_error("api", "no memory for a request");
        return COLL_ERR_NOMEM;
    }
    new->request.kind = REQUEST_STREAM;
    new->request.call.comm = comm;
    rc = keep(&new->request, args);
    if (rc) {
        free(new);
        return rc;
    }
    *out = &new->request;
    return COLL_OK;
}

static void set_status(struct coll_request *request, int status)
{
    atomic_store_explicit(&request->status, status, memory_order_release);
}

int coll__stream_start(struct coll_request *request)
{
    int rc;

    coll__stream_look(request);
    if (coll__request_status(request) == COLL_IN_PROGRESS)
        return coll__args_wrong(&request->args,
                                "the request already runs; wait "
                                "for it first");
    rc = coll__stream_compare_call(request->call.comm, &request->args);
    if (rc == COLL_OK)
        rc = enqueue_one(request->call.comm, &request->args,
                         &of_stream(request)->ticket);
    set_status(request, rc == COLL_OK ? COLL_IN_PROGRESS : rc);
    return rc;
}

void coll__stream_look(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int has_finished, failure;

    if (coll__request_status(request) != COLL_IN_PROGRESS)
        return;
    has_finished =
        coll__programs_has_finished(comm, of_stream(request)->ticket);
    if (has_finished)
        coll__stream_hear(comm);
    failure = atomic_load_explicit(&comm->failure.status, memory_order_acquire);
    if (failure)
        set_status(request, failure);
    else if (has_finished)
        set_status(request, COLL_OK);
}

/* The watch knows the missing ranks, so the caller's own deadline comes later, for a
 * stream that has not reached the call. */
static double most_of(const struct coll_comm *comm, double timeout)
{
    return timeout >= comm->timeout ? LATER * timeout : timeout;
}

void coll__stream_wait(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->call.comm;
    double since = coll__now();
    double most = most_of(comm, timeout);
    uint32_t seen = come_to(comm);
    struct coll__wait wait;

    coll__wait_init(&wait, 0, NULL);
    coll__stream_look(request);
    while (coll__request_status(request) == COLL_IN_PROGRESS) {
        if (most > timeout && come_to(comm) != seen) {
            seen = come_to(comm);
            since = coll__now();
        }
        if (coll__active_move())
            coll__wait_moved(&wait);
        else if (coll__wait_idle(&wait, 0) && coll__now() - since > most)
            coll__comm_fail(
                comm, COLL_ERR_TIMEOUT,
                "%s did not end on its stream within %g s on rank "
                "%d; see what the stream waits for, and whether all "
                "ranks have called it",
                name_of(&request->args), most, comm->rank);
        coll__stream_look(request);
    }
}
