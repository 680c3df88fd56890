/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - started operations: queued in order, run, waited for.  All of it
 * is done by the communicator's owner.
 *
 * Each channel has a queue.  Of the collectives of a channel one runs at a time,
 * to its end before the next one begins, so their messages cannot mix; a small one
 * and a large one run side by side.  Sends and receives begin at once and all run:
 * messages between two ranks keep the order of the starts, since each takes its
 * place in the transport as it begins.  Requests in any order come into the queue of their
 * channel when all ranks have started them (any_order.c).
 */
#include "lib/run/request.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/comm/records.h"
#include "lib/comm/stall.h"
#include "lib/run/any_order.h"
#include "lib/run/notice.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/run/tagged.h"
#include "lib/trace/history.h"
#include "lib/trace/log.h"
#include "lib/trace/recorder.h"
#include "lib/trace/trace.h"
#include "lib/util/util.h"
#include "lib/exec/exec.h"

#include <string.h>

#define ROUNDS_MOVED 0xffu /* between two looks at the clock */

/* ---- one operation ------------------------------------------------------- */

static unsigned char *stage_of(const struct coll_request *request)
{
    return request->call.comm->run->queues[request->channel].stage;
}

static void fill_stage(const struct coll_request *request)
{
    unsigned char *to = stage_of(request);

    for (struct coll__part *part = request->parts; part; part = part->next) {
        if (part->len)
            memcpy(to, part->in, part->len);
        to += part->len;
    }
}

static void empty_stage(const struct coll_request *request)
{
    const unsigned char *from = stage_of(request);

    for (struct coll__part *part = request->parts; part; part = part->next) {
        if (part->len)
            memcpy(part->out, from, part->len);
        from += part->len;
    }
}

/* Return the signature that the message for a receive must have: the sender's. */
static struct coll__signature stamp_of_recv(const struct coll_request *request)
{
    struct coll__signature sig = request->call.sig;

    sig.collective = COLL_SEND;
    sig.root = request->call.comm->rank;
    return sig;
}

/* Trace a request that has ended, unless it began before tracing did. */
static void trace(const struct coll_request *request)
{
    const struct coll_comm *comm = request->call.comm;
    struct coll__traced op = {
        .collective = request->problem.collective,
        .type = request->problem.type,
        .count = request->problem.count,
        .bytes = request->problem.collective == COLL_BARRIER
                     ? 0 /* its token is nobody's */
                     : coll__problem_bytes(&request->problem),
        .n_ranks = comm->size,
        .metrics = comm->records.metrics,
        .user_tag = request->call.user_tag,
        .algorithm = request->algorithm,
        .transports = comm->links.names,
        .called = request->called,
        .begun = request->begun,
        .ended = coll__now(),
    };

    coll__recorder_ended(&request->call.comm->records.recorder,
                         &request->call.sig, op.ended);
    if (!request->called || request->call.sig.series == SERIES_COMPARED)
        return;
    coll__trace_note(&op);
    if (coll__is_joint(op.collective, op.count))
        coll__records_joint(request->call.comm, op.ended - op.called);
}

static void begin(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int is_barrier = request->problem.collective == COLL_BARRIER;
    const struct coll__signature *sig = &request->call.sig;
    struct coll__signature other;

    if (coll__trace_is_on())
        request->begun = coll__now();
    if (request->parts)
        fill_stage(request);
    if (request->problem.collective == COLL_RECV) {
        other = stamp_of_recv(request);
        sig = &other;
    }
    coll__prog_start(request->prog, sig,
                     is_barrier ? &comm->run->token[0] : request->args.in,
                     is_barrier ? &comm->run->token[1] : request->args.out,
                     request->args.stream);
}

/* ---- the queue ----------------------------------------------------------- */

static void set_status(struct coll_request *request, int status)
{
    atomic_store_explicit(&request->status, status, memory_order_release);
}

/* From now on the request is its caller's, who may free it. */
static void end(struct coll_request *request, int status)
{
    int notifies = request->args.notify;

    set_status(request, status);
    if (notifies)
        coll__notice();
}

static void append(struct coll__queue *queue, struct coll_request *request)
{
    set_status(request, COLL_IN_PROGRESS);
    request->next = NULL;
    request->queued_at = queue->last;
    *queue->last = request;
    queue->last = &request->next;
    request->call.comm->run->n_running++;
}

void coll__request_unqueue(struct coll_request *request)
{
    struct coll__queue *queue =
        &request->call.comm->run->queues[request->channel];

    *request->queued_at = request->next;
    if (request->next)
        request->next->queued_at = request->queued_at;
    else
        queue->last = request->queued_at;
    request->call.comm->run->n_running--;
}

static void enqueue(struct coll_comm *comm, struct coll_request *request)
{
    struct coll__queue *queue = &comm->run->queues[request->channel];
    int is_first = !queue->first;

    append(queue, request);
    if (is_first && request->call.is_p2p)
        coll__history_p2p(coll__history_of(comm, &request->call.sig),
                          &request->call.sig, request->call.user_tag);
    if (is_first || request->call.is_p2p)
        begin(request);
}

/* Return the history in which the request counts. */
static struct coll__history *history_of(const struct coll_request *request)
{
    return coll__history_of(request->call.comm, &request->call.sig);
}

/* Give a collective its number. */
static void set_seq(struct coll_request *request)
{
    request->call.sig.seq =
        1 + atomic_load_explicit(&history_of(request)->n_started,
                                 memory_order_relaxed);
}

/* Count one more.  One thread at a time writes, so no locked instruction is needed. */
static uint64_t count_up(_Atomic uint64_t *n)
{
    uint64_t next = 1 + atomic_load_explicit(n, memory_order_relaxed);

    atomic_store_explicit(n, next, memory_order_relaxed);
    return next;
}

/* Is a look for old messages due?  Not while the links may be closed. */
static int is_look_due(const struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;

    return !request->call.is_p2p && !comm->lost.until &&
           coll__history_is_look_due(history_of(request)) &&
           !atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
}

int coll__request_start(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int at = request->call.sig.series * comm->size + request->problem.root;

    if (coll__trace_is_on() && !request->agreement)
        request->called = coll__now();
    if (is_look_due(request))
        coll__comm_look_around(comm); /* what it finds has failed then */
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__request_fail(request);
    if (!request->call.is_p2p) {
        set_seq(request);
        if (coll__trace_is_on())
            coll__recorder_called(&comm->records.recorder, &request->call.sig,
                                  request->called);
        coll__history_start(history_of(request), &request->call.sig,
                            request->call.user_tag);
    } else {
        request->call.sig.seq =
            count_up(request->problem.collective == COLL_SEND
                         ? &comm->calls.n_sent[at]
                         : &comm->calls.n_received[at]);
    }
    enqueue(comm, request);
    return COLL_OK;
}

int coll__request_start_any(struct coll_request *request)
{
    if (request->kind == REQUEST_TAGGED)
        return coll__tagged_start(request);
    return request->agreement ? coll__any_order_start(request)
                              : coll__request_start(request);
}

int coll__request_fail(struct coll_request *request)
{
    int status = coll__run_quiesce(request->call.comm);

    end(request, status);
    return status;
}

int coll__run_quiesce(struct coll_comm *comm)
{
    int status = coll__comm_status(comm);

    if (!comm->run->is_quiet)
        coll__comm_links_close(comm, 0);
    comm->run->is_quiet = 1;
    for (int c = 0; c < COLL__CHANNELS; c++) {
        struct coll__queue *queue = &comm->run->queues[c];

        while (queue->first) {
            struct coll_request *request = queue->first;

            coll__request_unqueue(request);
            end(request, status);
        }
    }
    coll__ended_init(&comm->run->ended);
    coll__tagged_reset(comm);
    if (comm->run->has_more & RUN_HAS_STREAMS)
        coll__stream_calls->release(comm);
    return status;
}

int coll__run_failed(struct coll_comm *comm, const struct coll__signature *call,
                     const struct coll__xfer *xfer, int status)
{
    return coll__comm_run_failed(comm, call, xfer, status)
               ? coll__run_quiesce(comm)
               : COLL_OK;
}

/* The program failed with this status. */
static int failed(const struct coll_request *request, int status)
{
    return coll__run_failed(request->call.comm, &request->call.sig,
                            coll__prog_fault(request->prog), status);
}

int coll__request_start_alone(struct coll_request *request)
{
    int rc, moved = 0;

    set_seq(request);
    begin(request); /* before it is noted: others wait for what it sends */
    coll__history_start(history_of(request), &request->call.sig,
                        request->call.user_tag);
    rc = coll__prog_look(request->prog, &moved);
    if (rc < 0) {
        rc = failed(request, rc);
        return rc ? rc : COLL_IN_PROGRESS;
    }
    if (rc == COLL_OK)
        coll__history_end(history_of(request), request->call.sig.seq);
    return rc;
}

void coll__request_queue(struct coll_request *request)
{
    append(&request->call.comm->run->queues[request->channel], request);
}

/* Return the number up to which all collectives of the history have ended. */
static uint64_t ended_up_to(struct coll_comm *comm,
                            const struct coll__history *history)
{
    uint64_t seq =
        atomic_load_explicit(&history->n_started, memory_order_relaxed);

    for (int c = 0; c < CHANNEL_P2P; c++) {
        const struct coll_request *first = comm->run->queues[c].first;

        if (first && coll__history_of(comm, &first->call.sig) == history &&
            first->call.sig.seq <= seq)
            seq = first->call.sig.seq - 1;
    }
    return seq;
}

/* The collective that runs on that channel has ended: begin the next one. */
static void end_first(struct coll_comm *comm, struct coll__queue *queue)
{
    struct coll_request *request = queue->first;
    struct coll__history *history = history_of(request);

    if (request->parts)
        empty_stage(request);
    coll__request_unqueue(request);
    coll__history_end(history, ended_up_to(comm, history));
    if (coll__trace_is_on())
        trace(request);
    if (request->call.stall.said)
        coll__stall_end(&request->call);
    end(request, COLL_OK);
    if (queue->first)
        begin(queue->first);
}

/* Do half a round of progress for the collectives of all channels: `go` is
 * coll__prog_look() or coll__prog_advance().  COLL_OK, or a status. */
static int step(struct coll_comm *comm,
                int (*go)(struct coll__prog *prog, int *moved), int *moved)
{
    for (int c = 0; c < CHANNEL_P2P; c++) {
        struct coll__queue *queue = &comm->run->queues[c];
        int rc;

        if (!queue->first)
            continue;
        rc = go(queue->first->prog, moved);
        if (rc == COLL_IN_PROGRESS)
            continue;
        if (rc < 0)
            return failed(queue->first, rc);
        *moved = 1;
        end_first(comm, queue);
    }
    return COLL_OK;
}

void coll__request_end(struct coll_request *request, int status)
{
    struct coll__queue *queue =
        &request->call.comm->run->queues[request->channel];
    int was_first = queue->first == request;

    coll__request_unqueue(request);
    if (was_first)
        coll__history_p2p(history_of(request),
                          queue->first ? &queue->first->call.sig : NULL,
                          queue->first ? queue->first->call.user_tag : 0);
    if (coll__trace_is_on())
        trace(request);
    if (request->call.stall.said)
        coll__stall_end(&request->call);
    end(request, status);
}

/* Advance the sends and receives whose message has ended.  The others have no local
 * steps, so they cost nothing here, however many there are. */
static int step_p2p(struct coll_comm *comm, int *moved)
{
    struct coll__xfer *xfer;

    while (!comm->lost.until && (xfer = coll__ended_take(&comm->run->ended))) {
        struct coll_request *request = xfer->owner;
        int rc = coll__prog_advance(request->prog, moved);

        if (rc < 0)
            return failed(request, rc);
        coll__request_end(request, COLL_OK);
    }
    return COLL_OK;
}

/* Move what has no program. */
static int move_more(struct coll_comm *comm, int *moved)
{
    int rc = COLL_OK;

    if (comm->run->has_more & RUN_HAS_TAGS)
        rc = coll__tagged_move(comm, moved);
    if (!rc && !comm->lost.until && (comm->run->has_more & RUN_HAS_ANY_ORDER))
        rc = coll__any_order_move(comm, moved);
    return rc || comm->lost.until || !(comm->run->has_more & RUN_HAS_STREAMS)
               ? rc
               : coll__stream_calls->move(comm, moved);
}

static int progress(struct coll_comm *comm, int *moved)
{
    int rc, n;

    *moved = 0;
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__run_quiesce(comm);
    if (comm->lost.until)
        return coll__comm_still_lost(comm) ? coll__run_quiesce(comm) : COLL_OK;
    rc = step(comm, coll__prog_look, moved);
    if (rc || !coll__run_has_work(comm->run) || comm->lost.until)
        return rc;
    n = coll__routes_poll(&comm->links.routes);
    if (n < 0) {
        coll__comm_fail(comm, n, "%s", coll_last_error());
        return coll__run_quiesce(comm);
    }
    *moved |= n > 0;
    rc = step(comm, coll__prog_advance, moved);
    if (!rc)
        rc = step_p2p(comm, moved);
    return rc || comm->lost.until || !comm->run->has_more
               ? rc
               : move_more(comm, moved);
}

int coll__run_progress(struct coll_comm *comm, int *moved)
{
    int rc = progress(comm, moved);

    if (*moved && comm->patience.since)
        coll__patience_end(comm);
    return rc;
}

/* ---- waiting ------------------------------------------------------------- */

int coll__request_check_stall(struct coll_request *request, double timeout,
                              int is_blocked)
{
    struct coll_comm *comm = request->call.comm;
    const struct coll_request *running =
        request->call.is_p2p || request->kind == REQUEST_TAGGED ||
                request->channel == CHANNEL_ORDER
            ? request
            : comm->run->queues[request->channel].first;

    if (coll__request_status(request) != COLL_IN_PROGRESS)
        return COLL_OK;
    return coll__stall_check(&request->call, &running->call, timeout,
                             is_blocked)
               ? coll__run_quiesce(comm)
               : COLL_OK;
}

/* Hand log lines to the handler, which may call operations of this communicator: so
 * ownership is released meanwhile. */
static void hand_out_lines(struct coll_comm *comm)
{
    if (!coll__log_is_waiting())
        return;
    coll__owner_release(comm);
    coll__log_done(COLL_OK);
    coll__owner_acquire(comm);
}

/* The wait takes long: let the caller's other library move its messages.  Its function
 * may wait for other communicators, so ownership is released meanwhile. */
static void call_idle(struct coll_comm *comm)
{
    if (!comm->idle.run)
        return;
    coll__owner_release(comm);
    comm->idle.run(comm->idle.arg);
    coll__owner_acquire(comm);
}

int coll__request_wait(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->call.comm;
    unsigned n_moved = 0; /* rounds in which anything moved */
    double since = coll__trace_is_on() ? coll__now() : 0;
    int moved;

    coll__wait_begin(&request->call);
    while (coll__request_status(request) == COLL_IN_PROGRESS) {
        int is_time;

        if (coll__run_progress(comm, &moved))
            break;
        if (moved || coll__active_move()) {
            coll__wait_moved(&comm->run->wait);
            is_time = (++n_moved & ROUNDS_MOVED) == 0;
        } else {
            is_time = coll__wait_idle(&comm->run->wait,
                                      coll__active_is_alone(comm->run));
        }
        if (is_time) {
            call_idle(comm);
            coll__request_check_stall(request, timeout, 1);
            hand_out_lines(comm);
        }
    }
    if (since)
        coll__trace_waited(comm->records.metrics, request->problem.collective,
                           coll__now() - since);
    return coll__request_result(request);
}
