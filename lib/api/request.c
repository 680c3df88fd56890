/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - operations: made once, queued in order, run one at a time.
 *
 * The operations of a communicator run in the order of their starts, each to
 * its end before the next begins, so their messages cannot mix.  A blocking
 * call is a request that the communicator keeps for the next call of its
 * shape; the hot path is a look-up, a start and the wait.
 */
#include "lib/api/comm.h"
#include "lib/plan/select.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CACHED 64
#define LOOK_AROUND_S 0.02
#define ASK_S 1.0         /* and twice as long before each next time */
#define TESTS_IDLE 0xfffu /* between two looks at the clock in coll_test() */

static int request_make(struct coll_comm *comm, const struct coll_args *args,
                        const struct coll__problem *pb,
                        struct coll_request **out)
{
    struct coll__op op;
    struct coll__binding to = {&op, &comm->routes, coll__device_of(args->out)};
    struct coll_request *request;
    const struct coll__algo *algo;
    struct coll__plan plan;
    double seconds;
    int rc;

    rc = coll__op_get(coll__reduces(pb->collective) ? args->op : pb->op, &op);
    if (rc)
        return rc;
    algo = coll__algo_select(pb, comm->settings.algo, &seconds);
    rc = coll__plan_build(algo, pb, comm->settings.chunk, &plan);
    if (rc)
        return rc;
    request = calloc(1, sizeof(*request));
    if (!request) {
        coll__plan_fini(&plan);
        log_error("api", "no memory for a request");
        return COLL_ERR_NOMEM;
    }
    rc = coll__prog_create(pb, &plan, &to, &request->prog);
    if (rc) {
        free(request);
        return rc;
    }
    request->comm = comm;
    request->args = *args;
    request->problem = *pb;
    request->head = (struct coll__head){
        .collective = (uint8_t)pb->collective,
        .type = (uint8_t)pb->type,
        .op = coll__op_code(&op),
        .root = pb->root,
        .count = pb->count,
    };
    log_debug("plan", "%s of %zu %s: %s, %.3g us predicted",
              coll_collective_name(pb->collective), pb->count,
              coll_type_name(pb->type), algo->name, seconds * 1e6);
    *out = request;
    return COLL_OK;
}

static void request_free(struct coll_request *request)
{
    coll__prog_destroy(request->prog);
    free(request);
}

/* ---- running ------------------------------------------------------------- */

static void run_first(struct coll_comm *comm)
{
    struct coll_request *request = comm->running;
    int is_barrier = request->problem.collective == COLL_BARRIER;

    coll__prog_start(request->prog, &request->head,
                     is_barrier ? &comm->token_in : request->args.in,
                     is_barrier ? &comm->token_out : request->args.out,
                     request->args.stream);
}

/* The communicator failed: its transports must not touch anyone's buffers any
 * more, and nothing runs on. */
static int quiesce(struct coll_comm *comm)
{
    int status = coll__comm_status(comm);

    if (!comm->is_quiet)
        coll__comm_links_close(comm, 0);
    comm->is_quiet = 1;
    for (; comm->running; comm->running = comm->running->next)
        comm->running->status = status;
    comm->last = &comm->running;
    return status;
}

/* Move the running operation on.  COLL_OK, or the communicator's failure. */
static int progress(struct coll_comm *comm, int *moved)
{
    struct coll_request *first = comm->running;
    int rc;

    *moved = 0;
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return quiesce(comm);
    if (!first)
        return COLL_OK;
    rc = coll__prog_run(first->prog, moved);
    if (rc == COLL_IN_PROGRESS)
        return COLL_OK;
    if (rc < 0) {
        coll__comm_prog_failed(comm, first->prog, rc);
        return quiesce(comm);
    }
    *moved = 1;
    first->status = COLL_OK;
    coll__history_end(&comm->history);
    comm->running = first->next;
    if (comm->running)
        run_first(comm);
    else
        comm->last = &comm->running;
    return COLL_OK;
}

/* Nothing moved for some time: is it too long, or is something wrong?  Messages
 * that nobody takes can be seen here; ranks that all wait must be asked. */
static int consider(struct coll_comm *comm, struct coll_request *request,
                    double timeout, struct coll__patience *p)
{
    double now = coll__now();

    if (!p->begin)
        *p = (struct coll__patience){now, now, now + ASK_S, ASK_S};
    if (now - p->begin > timeout)
        return coll__comm_timed_out(comm, request, timeout);
    if (now > p->ask) {
        p->pause *= 2;
        p->ask = now + p->pause;
        return coll__comm_ask_around(comm);
    }
    if (now - p->looked < LOOK_AROUND_S)
        return COLL_OK;
    p->looked = now;
    return coll__comm_look_around(comm);
}

static int wait_for(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->comm;
    struct coll__patience patience = {0};
    int moved;

    while (request->status == COLL_IN_PROGRESS) {
        if (progress(comm, &moved))
            break;
        if (moved)
            coll__wait_moved(&comm->wait);
        else if (coll__wait_idle(&comm->wait) &&
                 consider(comm, request, timeout, &patience))
            quiesce(comm);
    }
    return request->status;
}

static int start(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    uint64_t seq;

    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return request->status = quiesce(comm);
    seq = atomic_load_explicit(&comm->history.n_started, memory_order_relaxed);
    request->head.seq = seq + 1;
    coll__history_start(&comm->history, &request->head);
    request->status = COLL_IN_PROGRESS;
    request->next = NULL;
    *comm->last = request;
    comm->last = &request->next;
    if (comm->running == request)
        run_first(comm);
    return COLL_OK;
}

/* ---- blocking calls ------------------------------------------------------ */

static int same_problem(const struct coll__problem *a,
                        const struct coll__problem *b)
{
    return a->count == b->count && a->collective == b->collective &&
           a->type == b->type && a->op == b->op && a->root == b->root &&
           a->in_place == b->in_place;
}

/* Drop the request that was used longest ago. */
static void drop_oldest(struct coll_comm *comm)
{
    struct coll_request **at = &comm->cached;

    while ((*at)->next)
        at = &(*at)->next;
    request_free(*at);
    *at = NULL;
    comm->n_cached--;
}

/* Of a reduction the handle, too: one premul has not the scalar of another. */
static int same_op(const struct coll_request *request,
                   const struct coll_args *args)
{
    return !coll__reduces(request->problem.collective) ||
           request->args.op == args->op;
}

/* Take the kept request of this shape off the list, or make one. */
static int take_cached(struct coll_comm *comm, const struct coll_args *args,
                       const struct coll__problem *pb,
                       struct coll_request **out)
{
    for (struct coll_request **at = &comm->cached; *at; at = &(*at)->next)
        if (same_problem(&(*at)->problem, pb) && same_op(*at, args)) {
            *out = *at;
            *at = (*at)->next;
            comm->n_cached--;
            (*out)->args = *args;
            return COLL_OK;
        }
    if (comm->n_cached == MAX_CACHED)
        drop_oldest(comm);
    return request_make(comm, args, pb, out);
}

int coll__comm_call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll_request *request;
    struct coll__problem pb;
    int rc;

    if (!comm) {
        log_error("api", "%s: comm is NULL",
                  coll_collective_name(args->collective));
        return COLL_ERR_INVALID;
    }
    rc = coll__args_check(args, comm, &pb);
    if (rc == COLL_OK)
        rc = take_cached(comm, args, &pb, &request);
    if (rc)
        return rc;
    rc = start(request);
    if (rc == COLL_OK)
        rc = wait_for(request, comm->timeout);
    request->next = comm->cached;
    comm->cached = request;
    comm->n_cached++;
    return rc;
}

/* ---- the caller's own requests ------------------------------------------- */

static void own(struct coll_comm *comm, struct coll_request *request)
{
    request->own_next = comm->own;
    request->own_at = &comm->own;
    if (comm->own)
        comm->own->own_at = &request->own_next;
    comm->own = request;
}

static void disown(struct coll_request *request)
{
    *request->own_at = request->own_next;
    if (request->own_next)
        request->own_next->own_at = request->own_at;
}

void coll__comm_forget_requests(struct coll_comm *comm)
{
    while (comm->n_cached)
        drop_oldest(comm);
    while (comm->own) {
        struct coll_request *request = comm->own;

        disown(request);
        request_free(request);
    }
}

int coll_request_create(const struct coll_args *theirs, struct coll_comm *comm,
                        struct coll_request **request)
{
    struct coll__problem pb;
    struct coll_args args;
    int rc;

    if (!theirs || !comm || !request) {
        log_error("api", "coll_request_create: %s is NULL",
                  !theirs ? "args" : !comm ? "comm" : "request");
        return COLL_ERR_INVALID;
    }
    rc = coll__struct_take(theirs, &args, sizeof(args), "args");
    if (rc == COLL_OK)
        rc = coll__args_check(&args, comm, &pb);
    if (rc == COLL_OK)
        rc = coll__comm_status(comm);
    if (rc == COLL_OK)
        rc = request_make(comm, &args, &pb, request);
    if (rc == COLL_OK)
        own(comm, *request);
    return rc;
}

int coll_start(struct coll_request *request)
{
    if (!request || request->status == COLL_IN_PROGRESS) {
        log_error("api", request ? "coll_start: the request already runs; wait "
                                   "for it first"
                                 : "coll_start: request is NULL");
        return COLL_ERR_INVALID;
    }
    return start(request);
}

/* One round for coll_test(); many of them without effect are a wait as well. */
static void test_once(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;
    int moved;

    if (progress(comm, &moved))
        return;
    if (moved) {
        comm->patience = (struct coll__patience){0};
        comm->n_tests_idle = 0;
    } else if ((++comm->n_tests_idle & TESTS_IDLE) == 0 &&
               consider(comm, request, comm->timeout, &comm->patience)) {
        quiesce(comm);
    }
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
    return wait_for(request, timeout ? timeout : request->comm->timeout);
}

int coll_request_destroy(struct coll_request *request)
{
    if (!request)
        return COLL_OK;
    if (request->status == COLL_IN_PROGRESS &&
        coll__comm_status(request->comm) == COLL_OK) {
        log_error("api", "coll_request_destroy: the request still runs; wait "
                  "for it first");
        return COLL_ERR_INVALID;
    }
    if (request->status == COLL_IN_PROGRESS)
        quiesce(request->comm);
    disown(request);
    request_free(request);
    return COLL_OK;
}

int coll_plan_query(const struct coll_args *theirs, struct coll_comm *comm,
                    struct coll_plan_info *info)
{
    struct coll_plan_info ours = {0};
    const struct coll__algo *algo;
    struct coll__problem pb;
    struct coll__plan plan;
    struct coll_args args;
    int rc;

    if (!theirs || !comm || !info) {
        log_error("api", "coll_plan_query: %s is NULL",
                  !theirs ? "args" : !comm ? "comm" : "info");
        return COLL_ERR_INVALID;
    }
    rc = coll__struct_take(info, &ours, sizeof(ours), "plan_info");
    if (rc == COLL_OK)
        rc = coll__struct_take(theirs, &args, sizeof(args), "args");
    if (rc == COLL_OK)
        rc = coll__args_check(&args, comm, &pb);
    if (rc)
        return rc;
    ours = (struct coll_plan_info){.size = info->size};
    algo = coll__algo_select(&pb, comm->settings.algo, &ours.seconds);
    rc = coll__plan_build(algo, &pb, comm->settings.chunk, &plan);
    if (rc)
        return rc;
    strncpy(ours.algorithm, algo->name, sizeof(ours.algorithm) - 1);
    ours.n_steps = (size_t)plan.n_steps;
    ours.tmp_bytes = plan.tmp_len;
    coll__plan_fini(&plan);
    memcpy(info, &ours, min_size(info->size, sizeof(ours)));
    return COLL_OK;
}
