/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - requests: the plan and program of an operation, made once and started
 * any number of times. */
#include "lib/run/request.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/proof/plan_set.h"
#include "lib/run/any_order.h"
#include "lib/run/args.h"
#include "lib/run/cache.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/run/tagged.h"
#include "lib/comm/algorithm_id.h"
#include "lib/price/select.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "lib/algo/algo.h"
#include "lib/exec/exec.h"
#include "lib/price/tune.h"

#include <stdlib.h>
#include <string.h>

/* ---- which plan ---------------------------------------------------------- */

/* Find the algorithm that the caller names. */
static int choose_named(const char *name, const struct coll__problem *pb,
                        const struct coll__algo **algo)
{
    const char *collective = coll_collective_name(pb->collective);
    const char *refusal;

    *algo = coll__algo_find(pb->collective, name);
    if (!*algo) {
        log_error("api",
                  "%s: there is no algorithm '%s'; "
                  "coll_plan_candidate() names those that there are",
                  collective, name);
        return COLL_ERR_INVALID;
    }
    refusal = coll__algo_refuses(*algo, pb);
    if (!refusal)
        return COLL_OK;
    log_error("api", "%s: the algorithm %s %s; name another one, or pass NULL",
              collective, name, refusal);
    return COLL_ERR_INVALID;
}

/* Return the fastest algorithm according to the tuning file if COLL_ALGO allows it,
 * else NULL. */
static const struct coll__algo *choose_tuned(const struct coll_comm *comm,
                                             const struct coll__problem *pb,
                                             const struct coll__algo *cheapest)
{
    if (coll__algo_is_forced(cheapest, comm->settings.algo, pb->collective))
        return NULL;
    return coll__tune_find(comm->tune, pb, comm->n_hosts);
}

static int choose(const struct coll_comm *comm, const struct coll_args *args,
                  const struct coll__problem *pb,
                  const struct coll__algo **algo, double *seconds)
{
    struct coll__candidate first = {0};
    int n, rc;

    if (args->algo && *args->algo) {
        rc = choose_named(args->algo, pb, algo);
        if (rc == COLL_OK)
            *seconds = (*algo)->cost(pb);
        return rc;
    }
    n = coll__algo_candidates(pb, comm->settings.algo, &first, 1);
    if (n && !first.refusal) {
        const struct coll__algo *tuned = choose_tuned(comm, pb, first.algo);

        *algo = tuned ? tuned : first.algo;
        *seconds = tuned ? tuned->cost(pb) : first.seconds;
        return COLL_OK;
    }
    log_error("api",
              "%s: no algorithm can do this%s%s%s%s; take another "
              "operation or a newer libcoll",
              coll_collective_name(pb->collective), n ? ": " : "",
              n ? first.algo->name : "", n ? " " : "", n ? first.refusal : "");
    return COLL_ERR_UNSUPPORTED;
}

static void tell(const struct coll__problem *pb, const struct coll__algo *algo,
                 double seconds)
{
    log_debug("plan", "%s of %zu %s: %s, %.3g us predicted",
              coll_collective_name(pb->collective), pb->count,
              coll_type_name(pb->type), algo->name, seconds * 1e6);
}

int coll__request_choose(const struct coll_comm *comm,
                         const struct coll_args *args,
                         const struct coll__problem *pb,
                         const struct coll__algo **algo)
{
    double seconds;
    int rc = choose(comm, args, pb, algo, &seconds);

    if (rc == COLL_OK)
        tell(pb, *algo, seconds);
    return rc;
}

/* If only two ranks know a message's length, the message is not cut into chunks, so
 * that a receiver notices a length that differs. */
static size_t chunk_of(const struct coll_comm *comm,
                       const struct coll__problem *pb)
{
    return coll__has_own_counts(pb->collective) ? 0 : comm->settings.chunk;
}

int coll__request_plan(const struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb, struct coll__plan *plan,
                       double *seconds)
{
    const struct coll__algo *algo;
    int rc = args->algo && *args->algo
                 ? COLL_ERR_UNSUPPORTED
                 : coll__plan_set_find(comm->plan_set, pb, plan);

    *seconds = 0; /* nothing is predicted for a plan from a file */
    if (rc != COLL_ERR_UNSUPPORTED)
        return rc;
    rc = choose(comm, args, pb, &algo, seconds);
    if (rc)
        return rc;
    rc = coll__plan_build(algo, pb, chunk_of(comm, pb), plan);
    if (rc == COLL_OK)
        tell(pb, algo, *seconds);
    return rc;
}

/* ---- making -------------------------------------------------------------- */

static uint64_t digest(const size_t *counts, int n)
{
    uint64_t hash = 0;

    for (int r = 0; r < n; r++)
        hash = coll__hash_add(hash, counts[r]);
    return hash;
}

struct coll__signature coll__request_signature(const struct coll__problem *pb,
                                               const struct coll__op *op,
                                               enum coll__series series)
{
    struct coll__signature sig = {
        .collective = (uint8_t)pb->collective,
        .type = (uint8_t)pb->type,
        .op = coll__op_code(op),
        .series = (uint8_t)series,
        .root = pb->root,
        .count = pb->count,
    };

    if (coll__has_own_counts(pb->collective))
        sig.count = 0;
    else if (coll__has_counts(pb->collective))
        sig.count =
            digest(pb->in_counts ? pb->in_counts : pb->out_counts, pb->nranks);
    if (op->post.is_set)
        coll__signature_set_scale(&sig, op->postscale);
    return sig;
}

void coll__request_stamp(struct coll_request *request,
                         const struct coll__op *op)
{
    const struct coll__problem *pb = &request->problem;
    struct coll__signature *sig = &request->call.sig;

    *sig = coll__request_signature(pb, op, coll__series_of(&request->args));
    sig->algo_id = coll__algorithm_id(pb->collective, request->algorithm) &
                   COLL__ALGORITHM_OF_FILE;
}

int coll__request_numbers(struct coll__problem *pb, size_t **numbers)
{
    const size_t **arrays[] = {&pb->in_counts, &pb->in_displs, &pb->out_counts,
                               &pb->out_displs};
    size_t n = (size_t)pb->nranks;
    size_t *to;

    if (!pb->in_counts && !pb->out_counts)
        return COLL_OK;
    to = *numbers = malloc(4 * n * sizeof(*to));
    if (!to)
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++, to += n)
        if (*arrays[i]) {
            memcpy(to, *arrays[i], n * sizeof(*to));
            *arrays[i] = to;
        }
    return COLL_OK;
}

/* Write what the request is for. */
static int set_problem(struct coll_request *request, struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb)
{
    request->call.comm = comm;
    request->problem = *pb;
    if (pb->collective != COLL_BARRIER) { /* whose token is the library's */
        request->in_len = coll__problem_len(pb, BUF_IN);
        request->out_len = coll__problem_len(pb, BUF_OUT);
    }
    request->call.is_p2p = coll__is_p2p(pb->collective);
    request->channel = coll__channel_of(comm, pb, coll__series_of(args));
    request->is_plain = (unsigned)args->op < COLL_N_OPS && !args->stream;
    request->args = *args;
    request->args.algo = NULL; /* what the caller may free */
    request->args.in_counts = request->args.in_displs = NULL;
    request->args.out_counts = request->args.out_displs = NULL;
    return coll__request_numbers(&request->problem, &request->numbers);
}

int coll__channel_of(const struct coll_comm *comm,
                     const struct coll__problem *pb, enum coll__series series)
{
    if (series == SERIES_COMPARED) /* of messages; see lib/stream/compare.c */
        return CHANNEL_P2P_STREAM;
    if (coll__is_p2p(pb->collective))
        return CHANNEL_P2P;
    if (coll__problem_total(pb) <= comm->settings.overtake)
        return series == SERIES_ANY_ORDER ? CHANNEL_ANY_SMALL : CHANNEL_SMALL;
    return series == SERIES_ANY_ORDER ? CHANNEL_ANY_LARGE : CHANNEL_LARGE;
}

size_t coll__request_bytes(const struct coll_request *request)
{
    size_t numbers = request->numbers ? 4 * (size_t)request->problem.nranks : 0;

    return request->prog ? sizeof(*request) + numbers * sizeof(size_t) +
                               coll__prog_bytes(request->prog)
                         : 0;
}

/* Build the plan and the program. */
static int set_program(struct coll_request *request,
                       const struct coll_args *args)
{
    struct coll_comm *comm = request->call.comm;
    const struct coll__problem *pb = &request->problem;
    struct coll__op op, own;
    struct coll__binding to = {.op = &own,
                               .routes = &comm->links.routes,
                               .device = &coll__device_host,
                               .channel = request->channel,
                               .is_lent_scratch = request->kind == REQUEST_KEPT,
                               .owner = request};
    struct coll__plan plan;
    double seconds;
    int rc = coll__request_plan(comm, args, pb, &plan, &seconds);

    if (rc)
        return rc;
    if (request->call.is_p2p)
        to.ended = &comm->run->ended;
    request->algorithm = plan.algorithm;
    if (coll__reduces(pb->collective))
        coll__op_for(args, pb->nranks, &op);
    else
        coll__op_get(pb->op, &op);
    own = coll__own_op_bind(&request->own_op, request->call.comm, &op);
    rc = coll__prog_create(pb, &plan, &to, &request->prog);
    if (rc)
        return rc;
    request->tmp_len = coll__prog_scratch(request->prog);
    coll__request_stamp(request, &op);
    return COLL_OK;
}

int coll__request_init(struct coll_request *request, struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__problem *pb)
{
    int rc = set_problem(request, comm, args, pb);

    if (rc)
        log_error("api", "no memory for a request");
    else
        rc = set_program(request, args);
    if (rc)
        free(request->numbers);
    return rc;
}

static int request_new(struct coll_comm *comm, const struct coll_args *args,
                       const struct coll__problem *pb,
                       struct coll_request **out)
{
    struct coll_request *request = calloc(1, sizeof(*request));
    int rc;

    if (!request) {
        log_error("api", "no memory for a request");
        return COLL_ERR_NOMEM;
    }
    rc = coll__request_init(request, comm, args, pb);
    if (rc)
        free(request);
    else
        *out = request;
    return rc;
}

void coll__request_free(struct coll_request *request)
{
    coll__prog_destroy(request->prog);
    free(request->numbers);
    free(request);
}

/* ---- the caller's own ---------------------------------------------------- */

static void own(struct coll_comm *comm, struct coll_request *request)
{
    request->own_next = comm->run->own;
    request->own_at = &comm->run->own;
    if (comm->run->own)
        comm->run->own->own_at = &request->own_next;
    comm->run->own = request;
}

static void disown(struct coll_request *request)
{
    *request->own_at = request->own_next;
    if (request->own_next)
        request->own_next->own_at = request->own_at;
}

void coll__requests_forget_own(struct coll_comm *comm)
{
    struct coll_request *next;

    for (struct coll_request *at = comm->run->own; at; at = next) {
        next = at->own_next;
        if (at->kind != REQUEST_KEPT)
            coll__request_free(at);
    }
    comm->run->own = NULL;
}

/* Take a kept request, or make one; calls that name an algorithm have requests of their
 * own.  COLL_IN_PROGRESS: the call is for a stream. */
static int take(struct coll_comm *comm, const struct coll_args *args,
                struct coll_request **request)
{
    struct coll__problem pb;
    int rc;

    if (coll__is_tagged(args->collective))
        return coll__tagged_take(comm, args, request);
    if (coll__is_stream_call(args))
        return COLL_IN_PROGRESS;
    if (!args->algo || !*args->algo)
        return coll__cache_take_call(comm, args, request);
    if (coll__is_streams_after_all(args))
        return COLL_IN_PROGRESS;
    rc = coll__args_check(args, comm, &pb);
    return rc ? rc : request_new(comm, args, &pb, request);
}

static int on_stream(struct coll_comm *comm, const struct coll_args *args,
                     struct coll_request **request)
{
    int rc = coll__stream_calls_there(args);

    if (rc)
        return rc;
    if (args->notify)
        return coll__args_wrong(args, "only an operation on host buffers has "
                                      "notify; let an event follow it in its "
                                      "stream");
    if (args->any_order)
        return coll__args_wrong(args, "only an operation on host buffers has "
                                      "any_order; streams run their "
                                      "operations in the order of the calls");
    return coll__stream_calls->request(comm, args, request);
}

/* Its caller has no use for the request any more. */
static void put_back(struct coll_request *request)
{
    if (request->kind == REQUEST_KEPT)
        coll__cache_put(request);
    else
        coll__request_free(request);
}

int coll__request_create(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request)
{
    int rc = coll__comm_status(comm);
    uint32_t number = args->any_order ? coll__any_order_count(comm) : 0;

    if (rc == COLL_OK)
        rc = coll__any_order_check(args);
    if (rc == COLL_OK)
        rc = take(comm, args, request);
    if (rc == COLL_IN_PROGRESS)
        rc = on_stream(comm, args, request);
    if (rc)
        return rc;
    if (number && coll__any_order_join(*request, number)) {
        put_back(*request);
        return COLL_ERR_NOMEM;
    }
    (*request)->args.notify = args->notify;
    (*request)->call.user_tag = args->user_tag;
    own(comm, *request);
    return COLL_OK;
}

int coll__request_destroy(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int is_running;

    if (request->kind == REQUEST_STREAM)
        coll__stream_calls->look(request);
    is_running = coll__request_status(request) == COLL_IN_PROGRESS;
    if (is_running && coll__comm_status(comm) == COLL_OK) {
        log_error("api", "coll_request_destroy: the request still runs; wait "
                         "for it first");
        return COLL_ERR_INVALID;
    }
    if (is_running)
        coll__run_quiesce(comm);
    disown(request);
    request->args.notify = 0;
    request->call.user_tag = 0;
    coll__any_order_leave(request);
    put_back(request);
    return COLL_OK;
}

void coll__request_abandon(struct coll_request *request)
{
    disown(request);
    if (request->kind != REQUEST_KEPT) /* else the cache frees it */
        coll__request_free(request);
}
