/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - started operations: queued in order, run, waited for.  All of it
 * is done by the communicator's owner.
 *
 * Each channel has a queue.  Of the collectives of a channel one runs at a time,
 * to its end before the next one begins, so their messages cannot mix; a small one
 * and a large one run side by side.  Sends and receives begin at once and all run:
 * messages between two ranks keep the order of the starts, since each takes its
 * place in the transport as it begins.
 */
#include "lib/comm/comm.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/util.h"

#include <string.h>

#define ROUNDS_MOVED 0xffu     /* between two looks at the clock */
#define BYTES_LEFT (256 << 10) /* and more are for the thread to begin with */
#define TESTS_IDLE 0xfffu /* between two looks at the clock in coll_test() */

/* ---- one operation ------------------------------------------------------- */

static unsigned char *stage_of(const struct coll_request *request)
{
    return request->comm->queues[request->channel].stage;
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

/* A receive's messages are stamped as their sender stamps them. */
static struct coll__head stamp_of_recv(const struct coll_request *request)
{
    struct coll__head head = request->head;

    head.collective = COLL_SEND;
    head.root = request->comm->rank;
    return head;
}

/* What is traced of a request that has ended; nothing where it was begun before
 * anything was. */
static void trace(const struct coll_request *request)
{
    const struct coll_comm *comm = request->comm;
    struct coll__traced op = {
        .collective = request->problem.collective,
        .type = request->problem.type,
        .count = request->problem.count,
        .bytes = request->problem.collective == COLL_BARRIER
                     ? 0 /* its token is nobody's */
                     : coll__problem_bytes(&request->problem),
        .n_ranks = comm->size,
        .algorithm = request->algorithm,
        .transports = comm->transports,
        .called = request->called,
        .begun = request->begun,
        .ended = coll__now(),
    };

    coll__recorder_ended(request->comm, &request->head, op.ended);
    if (request->called && request->head.series != SERIES_COMPARED)
        coll__trace_note(&op);
}

static void begin(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int is_barrier = request->problem.collective == COLL_BARRIER;
    const struct coll__head *head = &request->head;
    struct coll__head other;

    if (coll__trace_is_on())
        request->begun = coll__now();
    if (request->parts)
        fill_stage(request);
    if (request->problem.collective == COLL_RECV) {
        other = stamp_of_recv(request);
        head = &other;
    }
    coll__prog_start(request->prog, head,
                     is_barrier ? &comm->token_in : request->args.in,
                     is_barrier ? &comm->token_out : request->args.out,
                     request->args.stream);
}

/* ---- the queue ----------------------------------------------------------- */

static void set_status(struct coll_request *request, int status)
{
    atomic_store_explicit(&request->status, status, memory_order_release);
}

static void append(struct coll__queue *queue, struct coll_request *request)
{
    set_status(request, COLL_IN_PROGRESS);
    request->next = NULL;
    request->queued_at = queue->last;
    *queue->last = request;
    queue->last = &request->next;
    request->comm->n_running++;
}

/* Take out one that has ended. */
static void take_out(struct coll_request *request)
{
    struct coll__queue *queue = &request->comm->queues[request->channel];

    *request->queued_at = request->next;
    if (request->next)
        request->next->queued_at = request->queued_at;
    else
        queue->last = request->queued_at;
    request->comm->n_running--;
}

static void enqueue(struct coll_comm *comm, struct coll_request *request)
{
    struct coll__queue *queue = &comm->queues[request->channel];
    int is_first = !queue->first;

    append(queue, request);
    if (is_first && request->is_p2p)
        coll__history_aside(coll__history_of(comm, &request->head),
                            &request->head);
    if (is_first || request->is_p2p)
        begin(request);
}

/* The operations that a request counts among. */
static struct coll__history *history_of(const struct coll_request *request)
{
    return coll__history_of(request->comm, &request->head);
}

/* Give a collective its number. */
static void set_seq(struct coll_request *request)
{
    request->head.seq =
        1 + atomic_load_explicit(&history_of(request)->n_started,
                                 memory_order_relaxed);
}

/* One more; written by one thread at a time, so no locked instruction. */
static uint64_t count_up(_Atomic uint64_t *n)
{
    uint64_t next = 1 + atomic_load_explicit(n, memory_order_relaxed);

    atomic_store_explicit(n, next, memory_order_relaxed);
    return next;
}

/* Is it time to look for old messages?  Not where the links may be closed. */
static int is_look_due(const struct coll_request *request)
{
    struct coll_comm *comm = request->comm;

    return !request->is_p2p && !comm->lost_until &&
           coll__history_is_look_due(history_of(request)) &&
           !atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
}

int coll__request_start(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int at = request->head.series * comm->size + request->problem.root;

    if (coll__trace_is_on())
        request->called = coll__now();
    if (is_look_due(request))
        coll__comm_look_around(comm); /* what it finds has failed then */
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed)) {
        set_status(request, coll__comm_quiesce(comm));
        return coll__request_status(request);
    }
    if (!request->is_p2p) {
        set_seq(request);
        if (coll__trace_is_on())
            coll__recorder_called(comm, &request->head, request->called);
        coll__history_start(history_of(request), &request->head);
    } else {
        request->head.seq = count_up(request->problem.collective == COLL_SEND
                                         ? &comm->n_sent[at]
                                         : &comm->n_received[at]);
    }
    enqueue(comm, request);
    return COLL_OK;
}

int coll__comm_quiesce(struct coll_comm *comm)
{
    int status = coll__comm_status(comm);

    if (!comm->is_quiet)
        coll__comm_links_close(comm, 0);
    comm->is_quiet = 1;
    for (int c = 0; c < COLL__CHANNELS; c++) {
        struct coll__queue *queue = &comm->queues[c];

        while (queue->first) {
            struct coll_request *request = queue->first;

            take_out(request);
            coll__prog_abandon(request->prog);
            set_status(request, status);
        }
    }
    coll__ended_init(&comm->ended);
    if (comm->streams)
        coll__stream_release(comm);
    return status;
}

/* Its status, or COLL_OK while that is being found out. */
static int failed(const struct coll_request *request, int status)
{
    return coll__comm_prog_failed(request->comm, request, status)
               ? coll__comm_quiesce(request->comm)
               : COLL_OK;
}

int coll__request_dash(struct coll_request *request)
{
    int rc, moved = 0;

    set_seq(request);
    begin(request); /* before it is noted: others wait for what it sends */
    coll__history_start(history_of(request), &request->head);
    rc = coll__prog_look(request->prog, &moved);
    if (rc < 0) {
        rc = failed(request, rc);
        return rc ? rc : COLL_IN_PROGRESS;
    }
    if (rc == COLL_OK)
        coll__history_end(history_of(request), request->head.seq);
    return rc;
}

void coll__request_join(struct coll_request *request)
{
    append(&request->comm->queues[request->channel], request);
}

/* All collectives of a history up to which number have ended? */
static uint64_t ended_up_to(struct coll_comm *comm,
                            const struct coll__history *history)
{
    uint64_t seq =
        atomic_load_explicit(&history->n_started, memory_order_relaxed);

    for (int c = 0; c < CHANNEL_P2P; c++) {
        const struct coll_request *first = comm->queues[c].first;

        if (first && coll__history_of(comm, &first->head) == history &&
            first->head.seq <= seq)
            seq = first->head.seq - 1;
    }
    return seq;
}

/* The collective that runs on that channel has ended: on to the next. */
static void end_first(struct coll_comm *comm, struct coll__queue *queue)
{
    struct coll_request *request = queue->first;
    struct coll__history *history = history_of(request);

    if (request->parts)
        empty_stage(request);
    take_out(request);
    coll__history_end(history, ended_up_to(comm, history));
    if (coll__trace_is_on())
        trace(request);
    if (request->stall.said)
        coll__stall_end(request);
    set_status(request, COLL_OK); /* it is its owner's again */
    if (queue->first)
        begin(queue->first);
}

/* Half a round of the collectives: coll__prog_look() or _advance().  COLL_OK, or
 * a status. */
static int step(struct coll_comm *comm,
                int (*go)(struct coll__prog *prog, int *moved), int *moved)
{
    for (int c = 0; c < CHANNEL_P2P; c++) {
        struct coll__queue *queue = &comm->queues[c];
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

/* A send or receive has ended. */
static void end_message(struct coll_request *request)
{
    struct coll__queue *queue = &request->comm->queues[request->channel];
    int was_first = queue->first == request;

    take_out(request);
    if (was_first)
        coll__history_aside(history_of(request),
                            queue->first ? &queue->first->head : NULL);
    if (coll__trace_is_on())
        trace(request);
    if (request->stall.said)
        coll__stall_end(request);
    set_status(request, COLL_OK);
}

/* Move the sends and receives on of which messages have ended, be it as they
 * began: they have no local steps, so there is nothing to be seen of the
 * others, however many these are. */
static int step_p2p(struct coll_comm *comm, int *moved)
{
    struct coll__xfer *xfer;

    while (!comm->lost_until && (xfer = coll__ended_take(&comm->ended))) {
        struct coll_request *request = xfer->owner;
        int rc = coll__prog_advance(request->prog, moved);

        if (rc < 0)
            return failed(request, rc);
        end_message(request);
    }
    return COLL_OK;
}

static int progress(struct coll_comm *comm, int *moved)
{
    int rc, n;

    *moved = 0;
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__comm_quiesce(comm);
    if (comm->lost_until)
        return coll__comm_still_lost(comm) ? coll__comm_quiesce(comm) : COLL_OK;
    rc = step(comm, coll__prog_look, moved);
    if (rc || !(comm->n_running || comm->n_captured) || comm->lost_until)
        return rc;
    n = coll__routes_poll(&comm->routes);
    if (n < 0) {
        coll__comm_fail(comm, n, "%s", coll_last_error());
        return coll__comm_quiesce(comm);
    }
    *moved |= n > 0;
    rc = step(comm, coll__prog_advance, moved);
    if (!rc)
        rc = step_p2p(comm, moved);
    return rc || comm->lost_until || !comm->streams
               ? rc
               : coll__stream_move(comm, moved);
}

int coll__comm_progress(struct coll_comm *comm, int *moved)
{
    int rc = progress(comm, moved);

    if (*moved)
        coll__patience_moved(comm);
    return rc;
}

/* ---- waiting ------------------------------------------------------------- */

/* To a handler, which may call operations of the same communicator. */
static void hand_out_lines(struct coll_comm *comm)
{
    if (!coll__log_is_waiting())
        return;
    coll__owner_release(comm);
    coll__log_done(COLL_OK);
    coll__owner_acquire(comm);
}

/* Its status; another thread may have ended it, and this one's last error has to
 * say why it failed. */
static int status_and_why(struct coll_request *request)
{
    int status = coll__request_status(request);

    if (status < 0)
        coll__log_set_error(request->comm->failure.text);
    return status;
}

int coll__request_wait(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->comm;
    unsigned n_moved = 0; /* rounds in which something did, of whomever */
    double since = coll__trace_is_on() ? coll__now() : 0;
    int moved;

    coll__wait_begin(request);
    while (coll__request_status(request) == COLL_IN_PROGRESS) {
        int is_time;

        if (coll__comm_progress(comm, &moved))
            break;
        if (moved || coll__active_move()) {
            coll__wait_moved(&comm->wait);
            is_time = (++n_moved & ROUNDS_MOVED) == 0;
        } else {
            is_time = coll__wait_idle(&comm->wait, coll__active_is_alone(comm));
        }
        if (is_time) {
            coll__stall_check(request, timeout, 1);
            hand_out_lines(comm);
        }
    }
    if (since)
        coll__trace_waited(coll__now() - since);
    return status_and_why(request);
}

/* Is it one of the parent's, in a child? */
static int is_inherited(const struct coll_request *request)
{
    return request && coll__comm_is_inherited(request->comm);
}

/* Would starting it take the caller more time than waking the thread that is there
 * for it?  What goes into memory that ranks share is copied as it begins. */
static int is_for_thread(const struct coll_request *request)
{
    return request->in_len + request->out_len >= BYTES_LEFT &&
           coll__comm_has_thread_apart(request->comm);
}

/* Have others start it. */
static int leave(struct coll_request *request, int is_for_thread)
{
    set_status(request, COLL_IN_PROGRESS);
    coll__submit(request, is_for_thread);
    return COLL_OK;
}

static int start(struct coll_request *request)
{
    int rc;

    if (is_inherited(request))
        return coll__comm_inherited("coll_start");
    rc = request ? coll__owner_refuses(request->comm, "coll_start") : COLL_OK;
    if (rc)
        return rc;
    if (request && request->is_streams)
        return coll__stream_start(request);
    if (!request || coll__request_status(request) == COLL_IN_PROGRESS) {
        log_error("api", request ? "coll_start: the request already runs; wait "
                                   "for it first"
                                 : "coll_start: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (is_for_thread(request))
        return leave(request, 1);
    if (!coll__owner_try(request->comm)) /* another thread moves it */
        return leave(request, 0);
    coll__submitted_start(request->comm);
    rc = coll__request_start(request);
    coll__owner_release(request->comm);
    return rc;
}

int coll_start(struct coll_request *request)
{
    return coll__log_done(start(request));
}

/* One round for coll_test(); many of them without effect are a wait as well. */
static void test_once(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int moved;

    if (coll__comm_progress(comm, &moved))
        return;
    if (moved)
        comm->n_tests_idle = 0;
    else if ((++comm->n_tests_idle & TESTS_IDLE) == 0)
        coll__stall_check(request, comm->timeout, 0);
}

static int test(struct coll_request *request)
{
    struct coll_comm *comm;
    int rc;

    if (!request) {
        log_error("api", "coll_test: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (is_inherited(request))
        return coll__comm_inherited("coll_test");
    comm = request->comm;
    rc = coll__owner_refuses(comm, "coll_test");
    if (rc)
        return rc;
    coll__active_move();
    if (request->is_streams) {
        coll__stream_look(request);
        return status_and_why(request);
    }
    if (coll__request_status(request) != COLL_IN_PROGRESS ||
        !coll__owner_try(comm)) /* another thread moves it */
        return status_and_why(request);
    coll__submitted_start(comm);
    test_once(request);
    coll__owner_release(comm);
    return status_and_why(request);
}

int coll_test(struct coll_request *request)
{
    return coll__log_done(test(request));
}

static int wait_for(struct coll_request *request, double timeout)
{
    int rc;

    if (!request || !(timeout >= 0 && timeout <= 1e9)) {
        log_error("api", request ? "coll_wait: timeout must be 0 to 1e9 seconds"
                                 : "coll_wait: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (is_inherited(request))
        return coll__comm_inherited("coll_wait");
    if (coll__request_status(request) != COLL_IN_PROGRESS)
        return status_and_why(request);
    rc = coll__owner_refuses(request->comm, "coll_wait");
    if (rc)
        return rc;
    if (request->is_streams) {
        coll__stream_wait(request, timeout ? timeout : request->comm->timeout);
        return status_and_why(request);
    }
    coll__owner_acquire(request->comm);
    rc =
        coll__request_wait(request, timeout ? timeout : request->comm->timeout);
    coll__owner_release(request->comm);
    return rc;
}

int coll_wait(struct coll_request *request, double timeout)
{
    return coll__log_done(wait_for(request, timeout));
}
