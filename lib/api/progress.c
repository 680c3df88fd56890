/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - started operations: queued in order, run, waited for.  All of it
 * is done by who has the communicator's turn.
 *
 * A collective runs alone, to its end before the next one begins, so its
 * messages cannot mix with others.  Sends and receives that follow each other
 * in the queue run side by side: messages between two ranks keep the order of
 * the starts, since each takes its place in the transport as it begins.
 */
#include "lib/api/comm.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

#define ROUNDS_OF_OTHERS 0xffu /* between two looks at the clock */
#define TESTS_IDLE 0xfffu /* between two looks at the clock in coll_test() */

/* ---- one operation ------------------------------------------------------- */

static void fill_stage(const struct coll_request *request)
{
    unsigned char *to = request->comm->stage;

    for (struct coll__part *part = request->parts; part; part = part->next) {
        if (part->len)
            memcpy(to, part->in, part->len);
        to += part->len;
    }
}

static void empty_stage(const struct coll_request *request)
{
    const unsigned char *from = request->comm->stage;

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

static void begin(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int is_barrier = request->problem.collective == COLL_BARRIER;
    const struct coll__head *head = &request->head;
    struct coll__head other;

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

/* What was begun has ended: begin what comes next, if anything. */
static void begin_next(struct coll_comm *comm)
{
    struct coll_request *next = comm->running;

    if (!next) {
        comm->last = &comm->running;
        comm->waiting = NULL;
        return;
    }
    if (next->is_p2p)
        coll__history_aside(&comm->history, &next->head);
    do {
        begin(next);
        next = next->next;
    } while (next && next->is_p2p && comm->running->is_p2p);
    comm->waiting = next;
}

static void set_status(struct coll_request *request, int status)
{
    atomic_store_explicit(&request->status, status, memory_order_release);
}

static void enqueue(struct coll_comm *comm, struct coll_request *request)
{
    set_status(request, COLL_IN_PROGRESS);
    request->next = NULL;
    *comm->last = request;
    comm->last = &request->next;
    if (comm->running == request)
        begin_next(comm);
    else if (!comm->waiting && request->is_p2p && comm->running->is_p2p)
        begin(request);
    else if (!comm->waiting)
        comm->waiting = request;
}

/* Give a collective its number. */
static void set_seq(struct coll_request *request)
{
    request->head.seq = 1 + atomic_load_explicit(
                                &request->comm->history.n_started,
                                memory_order_relaxed);
}

/* One more; written by one thread at a time, so no locked instruction. */
static uint64_t count_up(_Atomic uint64_t *n)
{
    uint64_t next = 1 + atomic_load_explicit(n, memory_order_relaxed);

    atomic_store_explicit(n, next, memory_order_relaxed);
    return next;
}

int coll__request_start(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int peer = request->problem.root;

    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed)) {
        set_status(request, coll__comm_quiesce(comm));
        return coll__request_status(request);
    }
    if (!request->is_p2p) {
        set_seq(request);
        coll__history_start(&comm->history, &request->head);
    } else {
        request->head.seq = count_up(request->problem.collective == COLL_SEND
                                         ? &comm->n_sent[peer]
                                         : &comm->n_received[peer]);
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
    while (comm->running) {
        struct coll_request *request = comm->running;

        comm->running = request->next;
        coll__prog_abandon(request->prog);
        set_status(request, status);
    }
    comm->last = &comm->running;
    comm->waiting = NULL;
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
    struct coll_comm *comm = request->comm;
    int rc, moved;

    set_seq(request);
    begin(request); /* before it is noted: others wait for what it sends */
    coll__history_start(&comm->history, &request->head);
    rc = coll__prog_run(request->prog, &moved);
    if (rc < 0) {
        rc = failed(request, rc);
        return rc ? rc : COLL_IN_PROGRESS;
    }
    if (rc == COLL_OK)
        coll__history_end(&comm->history);
    return rc;
}

void coll__request_join(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;

    set_status(request, COLL_IN_PROGRESS);
    request->next = NULL;
    comm->running = request;
    comm->last = &request->next;
}

/* Sends and receives have left the queue: on to the next, or say which of those
 * that are left is the first. */
static void pass_on(struct coll_comm *comm)
{
    if (comm->running && comm->running != comm->waiting) {
        coll__history_aside(&comm->history, &comm->running->head);
        return;
    }
    coll__history_aside(&comm->history, NULL);
    begin_next(comm);
}

/* Move the sends and receives at the head of the queue on. */
static int progress_p2p(struct coll_comm *comm, int *moved)
{
    struct coll_request *first = comm->running, **at = &comm->running;
    int rc = coll__routes_poll(&comm->routes);

    if (rc < 0)
        return failed(first, rc);
    *moved = rc > 0;
    while (*at != comm->waiting) {
        struct coll_request *request = *at;

        rc = coll__prog_advance(request->prog, moved);
        if (rc < 0)
            return failed(request, rc);
        if (rc == COLL_IN_PROGRESS) {
            at = &request->next;
            continue;
        }
        *moved = 1;
        *at = request->next;
        if (!request->next)
            comm->last = at;
        set_status(request, COLL_OK);
    }
    if (comm->running != first)
        pass_on(comm);
    return COLL_OK;
}

static int progress(struct coll_comm *comm, int *moved)
{
    struct coll_request *first = comm->running;
    int rc;

    *moved = 0;
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__comm_quiesce(comm);
    if (!first)
        return COLL_OK;
    if (comm->lost_until)
        return coll__comm_still_lost(comm) ? coll__comm_quiesce(comm) : COLL_OK;
    if (first->is_p2p)
        return progress_p2p(comm, moved);
    rc = coll__prog_run(first->prog, moved);
    if (rc == COLL_IN_PROGRESS)
        return COLL_OK;
    if (rc < 0)
        return failed(first, rc);
    *moved = 1;
    if (first->parts)
        empty_stage(first);
    coll__history_end(&comm->history);
    comm->running = first->next;
    set_status(first, COLL_OK);
    begin_next(comm);
    return COLL_OK;
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
    coll__turn_give(comm);
    coll__log_done(COLL_OK);
    coll__turn_take(comm);
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
    unsigned n_others = 0; /* rounds in which only others moved */
    int moved;

    coll__wait_begin(request);
    while (coll__request_status(request) == COLL_IN_PROGRESS) {
        int is_time;

        if (coll__comm_progress(comm, &moved))
            break;
        if (moved || coll__engine_move()) {
            coll__wait_moved(&comm->wait);
            is_time = !moved && (++n_others & ROUNDS_OF_OTHERS) == 0;
        } else {
            is_time = coll__wait_idle(&comm->wait, coll__engine_is_alone(comm));
        }
        if (is_time) {
            coll__comm_consider(request, timeout, 1);
            hand_out_lines(comm);
        }
    }
    return status_and_why(request);
}

/* Is it one of the parent's, in a child? */
static int is_inherited(const struct coll_request *request)
{
    return request && coll__comm_is_inherited(request->comm);
}

static int start(struct coll_request *request)
{
    int rc;

    if (is_inherited(request))
        return coll__comm_inherited("coll_start");
    if (!request || coll__request_status(request) == COLL_IN_PROGRESS) {
        log_error("api", request ? "coll_start: the request already runs; wait "
                                   "for it first"
                                 : "coll_start: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (!coll__turn_try(request->comm)) { /* another thread moves it */
        set_status(request, COLL_IN_PROGRESS);
        coll__submit(request);
        return COLL_OK;
    }
    coll__submitted_start(request->comm);
    rc = coll__request_start(request);
    coll__turn_give(request->comm);
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
        coll__comm_consider(request, comm->timeout, 0);
}

static int test(struct coll_request *request)
{
    struct coll_comm *comm;

    if (!request) {
        log_error("api", "coll_test: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (is_inherited(request))
        return coll__comm_inherited("coll_test");
    comm = request->comm;
    coll__engine_move();
    if (coll__request_status(request) != COLL_IN_PROGRESS ||
        !coll__turn_try(comm)) /* another thread moves it */
        return status_and_why(request);
    coll__submitted_start(comm);
    test_once(request);
    coll__turn_give(comm);
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
    coll__turn_take(request->comm);
    rc = coll__request_wait(request,
                            timeout ? timeout : request->comm->timeout);
    coll__turn_give(request->comm);
    return rc;
}

int coll_wait(struct coll_request *request, double timeout)
{
    return coll__log_done(wait_for(request, timeout));
}
