/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - started operations: queued in order, run, waited for.
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

#define LOOK_AROUND_S 0.02
#define ASK_S 1.0         /* and twice as long before each next time */
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

/* coll_test() waits for something else from now on. */
static void forget_tests(struct coll_comm *comm)
{
    comm->patience = (struct coll__patience){0};
    comm->n_tests_idle = 0;
}

/* What was begun has ended: begin what comes next, if anything. */
static void begin_next(struct coll_comm *comm)
{
    struct coll_request *next = comm->running;

    if (comm->n_tests_idle)
        forget_tests(comm);
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

static void enqueue(struct coll_comm *comm, struct coll_request *request)
{
    request->status = COLL_IN_PROGRESS;
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

int coll__request_start(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int peer = request->problem.root;

    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return request->status = coll__comm_quiesce(comm);
    if (!request->is_p2p) {
        set_seq(request);
        coll__history_start(&comm->history, &request->head);
    } else {
        request->head.seq = request->problem.collective == COLL_SEND
                                ? ++comm->n_sent[peer]
                                : ++comm->n_received[peer];
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
    for (; comm->running; comm->running = comm->running->next)
        comm->running->status = status;
    comm->last = &comm->running;
    comm->waiting = NULL;
    return status;
}

static int failed(const struct coll_request *request, int status)
{
    coll__comm_prog_failed(request->comm, request, status);
    return coll__comm_quiesce(request->comm);
}

int coll__request_dash(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int rc, moved;

    set_seq(request);
    begin(request); /* before it is noted: others wait for what it sends */
    coll__history_start(&comm->history, &request->head);
    rc = coll__prog_run(request->prog, &moved);
    if (rc < 0)
        return failed(request, rc);
    if (rc == COLL_OK)
        coll__history_end(&comm->history);
    return rc;
}

void coll__request_join(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;

    request->status = COLL_IN_PROGRESS;
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
        request->status = COLL_OK;
        *at = request->next;
        if (!request->next)
            comm->last = at;
    }
    if (*moved && comm->n_tests_idle)
        forget_tests(comm);
    if (comm->running != first)
        pass_on(comm);
    return COLL_OK;
}

int coll__comm_progress(struct coll_comm *comm, int *moved)
{
    struct coll_request *first = comm->running;
    int rc;

    *moved = 0;
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__comm_quiesce(comm);
    if (!first)
        return COLL_OK;
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
    first->status = COLL_OK;
    coll__history_end(&comm->history);
    comm->running = first->next;
    begin_next(comm);
    return COLL_OK;
}

/* ---- waiting ------------------------------------------------------------- */

/* Messages that nobody takes can be seen here; ranks that all wait must be
 * asked. */
int coll__comm_consider(struct coll_comm *comm,
                        const struct coll_request *request, double timeout,
                        struct coll__patience *p)
{
    double now = coll__now();
    int rc = COLL_OK;

    if (!p->begin)
        *p = (struct coll__patience){now, now, now + ASK_S, ASK_S};
    if (now - p->begin > timeout) {
        rc = coll__comm_timed_out(comm, request, timeout);
    } else if (now > p->ask) {
        p->pause *= 2;
        p->ask = now + p->pause;
        rc = coll__comm_ask_around(comm);
    } else if (now - p->looked >= LOOK_AROUND_S) {
        p->looked = now;
        rc = coll__comm_look_around(comm);
    }
    return rc ? coll__comm_quiesce(comm) : COLL_OK;
}

int coll__request_wait(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->comm;
    struct coll__patience patience = {0};
    int moved;

    while (request->status == COLL_IN_PROGRESS) {
        if (coll__comm_progress(comm, &moved))
            break;
        if (moved)
            coll__wait_moved(&comm->wait);
        else if (coll__wait_idle(&comm->wait))
            coll__comm_consider(comm, request, timeout, &patience);
    }
    return request->status;
}

int coll_start(struct coll_request *request)
{
    if (!request || request->status == COLL_IN_PROGRESS) {
        log_error("api", request ? "coll_start: the request already runs; wait "
                                   "for it first"
                                 : "coll_start: request is NULL");
        return COLL_ERR_INVALID;
    }
    return coll__request_start(request);
}

/* One round for coll_test(); many of them without effect are a wait as well. */
static void test_once(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int moved;

    if (coll__comm_progress(comm, &moved))
        return;
    if (moved)
        forget_tests(comm);
    else if ((++comm->n_tests_idle & TESTS_IDLE) == 0)
        coll__comm_consider(comm, request, comm->timeout, &comm->patience);
}

int coll_test(struct coll_request *request)
{
    if (!request) {
        log_error("api", "coll_test: request is NULL");
        return COLL_ERR_INVALID;
    }
    if (request->status == COLL_IN_PROGRESS)
        test_once(request);
    return request->status;
}

int coll_wait(struct coll_request *request, double timeout)
{
    if (!request || !(timeout >= 0 && timeout <= 1e9)) {
        log_error("api", request ? "coll_wait: timeout must be 0 to 1e9 seconds"
                                 : "coll_wait: request is NULL");
        return COLL_ERR_INVALID;
    }
    return coll__request_wait(request,
                              timeout ? timeout : request->comm->timeout);
}
