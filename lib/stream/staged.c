/* SPDX-License-Identifier: BSD-3-Clause */
/* staged.c - operations of streams through pinned host memory: with any transport and
 * any algorithm, within and between hosts.
 *
 * Pieces (cut.h) alternate between the two slots of a stage.  For pieces a, b, c the
 * caller's thread enqueues
 *
 *     copy a in, ready a, copy b in, ready b,
 *     wait a, copy a out, copy c in, ready c, wait b, copy b out, wait c, ...
 *
 * When the stream has made a piece ready, the host, as the communicator's owner,
 * carries it out as an operation over pinned buffers, and releases the stream
 * (cuda_stage.h: ready, done).  While the host works on one piece, the stream copies
 * the previous piece out and the next piece in.
 *
 * All of this is in the order of one stream and needs no second stream, so it works with
 * CUDA_DEVICE_MAX_CONNECTIONS=1, too.  A batch in another stream first waits for the end
 * of the batch before, by the word `finished`.  So batches follow each other and find
 * their slots free, and the caller may run ahead without a count.  Each call that it is
 * ahead costs a job in memory and places in the driver's ring.  When the ring is full
 * (some 1,000 calls), the driver blocks the caller until the stream moves.  The stream
 * does not need the caller for that: a job is published before the stream waits for it.
 *
 * Captured batches work the same way with other words: captured.h.
 */
#include "lib/stream/staged.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/run/request.h"
#include "lib/run/run.h"
#include "lib/stream/calls.h"
#include "lib/stream/carry.h"
#include "lib/run/cache.h"
#include "lib/trace/log.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_S 1e-3 /* between two checks of a stream that does not move */

/* ---- on the host, as owner -------------------------------------------- */

/* Copy pinned host buffers on the host: the driver would copy them at once, on the
 * caller's thread. */
static void copy_on_host(const struct coll__streams *s, struct coll__job *job,
                         enum coll__buf buf)
{
    unsigned char *slot = coll__slot_of(s, job, job->k);
    struct coll__cut_span span;

    for (int i = 0; i < job->n_calls; i++) {
        struct coll__stream_call *call = &job->calls[i];
        int is_in = buf == BUF_IN, part = 0;

        if (!(is_in ? call->is_in_host : call->is_out_host))
            continue;
        while (coll__cut_next(&call->cut, job->k, buf, &part, &span)) {
            if (is_in)
                memcpy(slot + span.here,
                       (const unsigned char *)call->args.in + span.there,
                       span.len);
            else
                memcpy((unsigned char *)call->args.out + span.there,
                       slot + span.here, span.len);
        }
    }
}

/* These calls bypass the plan cache: the caller's own operation may have been destroyed
 * since the call, and an algorithm's name is no part of a shape. */
static int is_own(const struct coll_args *args)
{
    return args->algo || (coll__reduces(args->collective) &&
                          (unsigned)args->op >= COLL_N_OPS);
}

static int take(struct coll_comm *comm, const struct coll__stream_call *call,
                const struct coll_args *args, const struct coll__problem *pb,
                struct coll_request **request)
{
    return is_own(args)
               ? coll__request_make(comm, args, pb,
                                    coll__reduces(args->collective) ? &call->op
                                                                    : NULL,
                                    request)
               : coll__cache_take_judged(comm, args, pb, request);
}

static void put(struct coll_request *request)
{
    if (request->kind == REQUEST_KEPT)
        coll__cache_put(request);
    else
        coll__request_free(request);
}

/* Start an operation on the host.  A failure fails the communicator; then the job must
 * not be touched any more. */
static int start(struct coll_comm *comm, struct coll__job *job,
                 const struct coll__stream_call *call,
                 const struct coll_args *args, const struct coll__problem *pb)
{
    struct coll_request *request;
    int rc = take(comm, call, args, pb, &request);

    if (rc) {
        coll__comm_fail(comm, rc, "%s", coll_last_error());
        return coll__run_quiesce(comm);
    }
    job->running[job->n_running++] = request;
    return coll__request_start(request);
}

/* In the slot, in and out are one buffer, except for an alltoall and for an input that is
 * only read. */
static int is_in_place(const struct coll__stream_call *call,
                       const struct coll__problem *pb)
{
    return coll__problem_len(pb, BUF_IN) && coll__problem_len(pb, BUF_OUT) &&
           !(coll__problem_shape(pb, BUF_IN) == SHAPE_PARTS &&
             coll__problem_shape(pb, BUF_OUT) == SHAPE_PARTS) &&
           !(coll__reduces(pb->collective) && call->op.is_premul);
}

static int start_collective(struct coll_comm *comm, struct coll__job *job)
{
    struct coll__stream_call *call = &job->calls[0];
    unsigned char *slot = coll__slot_of(comm->stream->staged, job, job->k);
    struct coll_args args = call->args;
    struct coll__problem pb;
    size_t in, out;

    coll__cut_piece(&call->cut, job->k, &pb, &in, &out);
    pb.in_place = is_in_place(call, &pb);
    args.in = slot + in;
    args.out = slot + out;
    args.count = pb.count;
    args.in_counts = pb.in_counts;
    args.in_displs = pb.in_displs;
    args.out_counts = pb.out_counts;
    args.out_displs = pb.out_displs;
    return start(comm, job, call, &args, &pb);
}

/* An empty message sends one empty message on the host. */
static int start_messages(struct coll_comm *comm, struct coll__job *job,
                          struct coll__stream_call *call)
{
    unsigned char *slot = coll__slot_of(comm->stream->staged, job, job->k);
    struct coll_args args = call->args;
    struct coll__problem pb;
    size_t in, out, left, at;
    int rc;

    if (job->k >= call->cut.n)
        return COLL_OK;
    coll__cut_piece(&call->cut, job->k, &pb, &in, &out);
    left = pb.count;
    at = in; /* and out */
    do {
        pb.count = args.count = min_size(left, call->cut.unit);
        args.in = call->args.in ? slot + at : NULL;
        args.out = call->args.out ? slot + at : NULL;
        rc = start(comm, job, call, &args, &pb);
        left -= pb.count;
        at += pb.count * call->cut.size;
    } while (rc == COLL_OK && left);
    return rc;
}

/* Find the largest number of pieces of any rank: all ranks take part in all of them. */
static int start_asking(struct coll_comm *comm, struct coll__job *job)
{
    struct coll__stream_call of = {.args = job->calls[0].args};
    struct coll_args *args = &of.args;
    struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                               .type = COLL_U64,
                               .op = COLL_MAX,
                               .nranks = comm->size,
                               .rank = comm->rank,
                               .count = 1,
                               .view = &comm->view};

    args->collective = COLL_ALLREDUCE;
    args->type = COLL_U64;
    args->op = COLL_MAX;
    args->root = 0;
    args->algo = NULL;
    args->count = 1;
    args->in_counts = args->in_displs = NULL;
    args->out_counts = args->out_displs = NULL;
    job->most[0] = job->n;
    args->in = &job->most[0];
    args->out = &job->most[1];
    return start(comm, job, &of, args, &pb);
}

/* What streams have sent before goes first: host operations use the same channel. */
static int begin(struct coll_comm *comm, struct coll__job *job)
{
    int moved = 0, rc = coll__carry_move(comm, &moved);

    if (rc || comm->lost.until)
        return rc;
    if (job->asks)
        return start_asking(comm, job);
    if (job->k < job->n)
        copy_on_host(comm->stream->staged, job, BUF_IN);
    if (!coll__is_p2p(job->calls[0].args.collective))
        return start_collective(comm, job);
    for (int i = 0, n = job->n_calls; i < n && rc == COLL_OK; i++)
        rc = start_messages(comm, job, &job->calls[i]);
    return rc;
}

/* Has the stream made the next piece ready?  A piece without data of this rank need not
 * wait. */
static int may_begin(const struct coll__job *job)
{
    uint32_t k = job->asks ? 0 : job->k;

    return k >= job->n ||
           coll__stage_is_at(job->words, STAGE_READY, job->first + k);
}

/* Put back the requests that have ended; have all ended? */
static int reap(struct coll__job *job)
{
    while (job->n_running &&
           coll__request_status(job->running[job->n_running - 1]) !=
               COLL_IN_PROGRESS)
        put(job->running[--job->n_running]);
    return !job->n_running;
}

static void let_go(const struct coll__stage *words, uint32_t number)
{
    atomic_store_explicit(coll__stage_word(words, STAGE_DONE), number,
                          memory_order_release);
}

void coll__job_free(struct coll__job *job)
{
    for (int i = 0; i < job->n_running; i++)
        if (job->running[i]->kind != REQUEST_KEPT) /* others are the cache's */
            coll__request_free(job->running[i]);
    for (int i = 0; i < job->n_calls; i++)
        coll__cut_fini(&job->calls[i].cut);
    free(job->calls);
    free(job->running);
    free(job);
}

void coll__job_drop(struct coll__job *job)
{
    if (atomic_fetch_sub(&job->n_users, 1) == 1)
        coll__job_free(job);
}

static void unlink_first(struct coll_comm *comm)
{
    struct coll__streams *s = comm->stream->staged;

    s->first = s->first->next;
    if (!s->first)
        s->last = &s->first;
    comm->run->n_running--;
    comm->run->n_streaming--;
}

/* All host operations of the current step have ended: begin the next step. */
static void end_piece(struct coll_comm *comm, struct coll__job *job)
{
    const struct coll__streams *s = comm->stream->staged;

    if (job->asks) {
        job->asks = 0;
        job->n_all = (uint32_t)job->most[1];
        return;
    }
    if (job->k < job->n) {
        copy_on_host(s, job, BUF_OUT);
        let_go(job->words, job->first + job->k);
    }
    job->k++;
}

/* The host has done its part of the job: may the next job begin? */
static int end_job(struct coll_comm *comm, struct coll__job *job)
{
    if (job->captured)
        return coll__captured_end(comm, job);
    unlink_first(comm);
    coll__job_drop(job);
    return 1;
}

/* Choose the next job.  One job runs at a time, from its first piece to its last: other
 * ranks may have more pieces of it, and all ranks keep the same order. */
static struct coll__job *next_job(struct coll_comm *comm)
{
    struct coll__streams *s = comm->stream->staged;

    if (!s->at)
        s->at = s->first && may_begin(s->first) ? s->first
                                                : coll__captured_begin(comm);
    return s->at;
}

/* Nothing moves: check that the device still works and that the ranks agree. */
static int look_after(struct coll_comm *comm)
{
    struct coll__streams *s = comm->stream->staged;
    double now = coll__now();
    int rc;

    if (now - s->looked < LOOK_S)
        return COLL_OK;
    s->looked = now;
    rc = coll__stage_probe(s->stage);
    if (rc < 0) {
        coll__comm_fail(comm, rc, "%s", coll_last_error());
        return coll__run_quiesce(comm);
    }
    return s->at && s->at->n_running
               ? coll__request_check_stall(s->at->running[0], comm->timeout, 0)
               : COLL_OK;
}

int coll__stream_move(struct coll_comm *comm, int *moved)
{
    struct coll__streams *s = comm->stream->staged;
    struct coll__job *job;
    int rc = coll__carry_move(comm, moved);

    if (rc || comm->lost.until)
        return rc;
    while ((job = next_job(comm))) {
        if (job->n_running) {
            if (!reap(job))
                break;
            end_piece(comm, job);
        } else if (!job->asks && job->k == job->n_all) {
            if (!end_job(comm, job))
                break;
            s->at = NULL;
        } else {
            if (!may_begin(job))
                break;
            rc = begin(comm, job);
            if (rc || comm->lost.until)
                return rc;
        }
        *moved = 1;
    }
    return comm->run->n_streaming && !*moved ? look_after(comm) : COLL_OK;
}

/* Drop all jobs, and set `done` to the last number, so that no stream waits any more. */
void coll__stream_release(struct coll_comm *comm)
{
    struct coll__streams *s = comm->stream->staged;

    while (s->first) {
        struct coll__job *job = s->first;

        unlink_first(comm);
        job->next = s->ended;
        s->ended = job;
    }
    coll__carry_release(comm);
    coll__captured_release(comm);
    s->at = NULL;
    if (s->stage)
        let_go(s->stage, s->published);
}

/* Streams may still use the stage: its next user checks that. */
void coll__staged_free(struct coll__streams *s)
{
    struct coll__job *job, *next;

    *s->last = s->ended;
    for (job = s->first; job; job = next) {
        next = job->next;
        coll__job_drop(job);
    }
    coll__captured_free(s);
    if (s->stage)
        coll__stage_put(s->stage);
}
