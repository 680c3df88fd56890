/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.c - operations that streams carry out by themselves.  The devices of all ranks
 * are joined while the communicator is made; a call enqueues its whole plan
 * (lib/exec/stream_engine.c).  The host only carries messages between devices that do not
 * reach each other, and does steps that no device does (carry.h).
 *
 * A program is made at the first call of a shape.  Runs of a communicator follow each
 * other, whatever their streams.  Each run takes a number on the stage, waits for the run
 * before, and marks when the stream has passed it.  So programs share their scratch.  A
 * captured run takes no number: it may be launched any number of times, and the caller
 * keeps the launches in order.
 *
 * The ranks' calls are compared only if COLL_CHECK asks for it (compare.c); a stream that
 * stands still is noticed in any case (watch.h).
 */
#include "lib/stream/programs.h"
#include "lib/stream/stream_program.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/device/cuda_held.h"
#include "lib/device/cuda_stream.h"
#include "lib/run/request.h"
#include "lib/stream/calls.h"
#include "lib/stream/gpu_view.h"
#include "lib/device/cuda_stage.h"
#include "lib/stream/stream_scratch.h"
#include "lib/stream/watch.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_kernels.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "lib/exec/exec.h"
#include "transports/stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEWS_S 0.5 /* for another rank's words to come */

struct coll__stream_programs {
    struct coll__stream_program_list list;
    struct coll__stream_program *now; /* of the call being enqueued */
    struct coll__stream_scratch scratch;
    struct coll__watch *watch; /* from the first call on */
    struct coll__kept_run kept;
    struct coll__registered found[N_BUFS]; /* of the call being enqueued */
};

/* ---- the transport ------------------------------------------------------------ */

int coll__programs_open(struct coll_comm *comm)
{
    comm->stream->programs = calloc(1, sizeof(*comm->stream->programs));
    if (comm->stream->programs)
        return COLL_OK;
    log_error("comm", "no memory for a communicator's streams");
    return COLL_ERR_NOMEM;
}

void coll__programs_set(struct coll_comm *comm, struct coll__stream_tp *tp)
{
    int status;

    pthread_mutex_lock(&comm->failure.lock);
    comm->links.routes.streams = tp;
    status = atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
    if (tp && status)
        tp->ops->release(tp, status);
    pthread_mutex_unlock(&comm->failure.lock);
}

void coll__stream_reclaim(void)
{
    coll__cuda_held_reclaim();
    coll__stream_cuda_ipc.reclaim();
}

/* ---- calls ------------------------------------------------------------------- */

/* Have scratch, and behind it what copies between pinned memory go through where there are
 * no kernels. */
static int have_scratch(struct coll_comm *comm, size_t len)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    struct coll__stream_scratch *scratch = &comm->stream->programs->scratch;
    size_t more = tp->has_no_kernels ? tp->slot : 0;
    int rc =
        len + more ? coll__stream_scratch_have(scratch, len + more) : COLL_OK;

    if (rc == COLL_OK && more)
        tp->bounce = (unsigned char *)scratch->at + len;
    return rc;
}

/* A barrier's token is stored after its scratch. */
static size_t scratch_len(const struct coll__prog *prog)
{
    return round_up(coll__prog_scratch(prog), CACHE_LINE);
}

/* Nothing is to be done. */
static int is_void(const struct coll__stream_call *call)
{
    return call->pb.collective == COLL_BARRIER && call->pb.nranks == 1;
}

static size_t token_len(const struct coll__stream_call *call)
{
    return call->pb.collective == COLL_BARRIER && !is_void(call) ? CACHE_LINE
                                                                 : 0;
}

static int have_all(struct coll_comm *comm,
                    const struct coll__stream_call *call)
{
    struct coll__stream_programs *list = comm->stream->programs;
    struct coll__stream_manner how = {.direct = 0};
    int rc = coll__find_registered(comm, call, list->found, &how.direct);

    if (rc == COLL_OK) {
        if (coll__is_one_kernel(comm->links.routes.streams, &call->pb))
            coll__registered_numbers(list->found, how.direct, how.regs);
        rc = coll__stream_program_have(&list->list, comm, call, &how,
                                       &list->now);
    }
    return rc ? rc
              : have_scratch(comm,
                             scratch_len(list->now->prog) + token_len(call));
}

static int are_messages(const struct coll__batch *batch)
{
    return coll__is_p2p(batch->calls[0].pb.collective);
}

/* Do all that may fail before anything is enqueued. */
static int prepare(struct coll_comm *comm, const struct coll__batch *batch)
{
    struct coll__stream_programs *list = comm->stream->programs;
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int rc = tp->ops->takes(tp, batch->stream, &batch->place);

    if (rc)
        return rc;
    if (are_messages(batch)) {
        rc = coll__messages_check(comm, batch);
        if (rc == COLL_OK)
            rc = have_scratch(comm, 0);
    } else {
        rc = have_all(comm, &batch->calls[0]);
    }
    if (rc == COLL_OK && !list->watch)
        rc = coll__watch_begin(comm, comm->stream->stage, &list->watch);
    return rc;
}

static int put(struct coll_comm *comm, const struct coll__stream_call *call,
               void *stream)
{
    const struct coll__stream_programs *list = comm->stream->programs;
    struct coll__prog *prog = list->now->prog;
    struct coll__signature sig =
        coll__request_signature(&call->pb, &call->op, SERIES_STREAM);
    const void *in = call->args.in;
    void *out = call->args.out;
    int moved, rc;

    if (is_void(call))
        return COLL_OK;
    rc = coll__programs_put_copy(comm, call, &list->now->pb, stream);
    if (rc)
        return rc;
    if (scratch_len(prog))
        coll__prog_lend(prog, list->scratch.at);
    for (int b = BUF_IN; b <= BUF_OUT && list->now->how.direct; b++)
        coll__prog_set_registered(prog, (enum coll__buf)b, list->found[b].reg,
                                  list->found[b].off);
    coll__prog_set_host(prog, call->is_host[BUF_IN], call->is_host[BUF_OUT]);
    if (token_len(call))
        in = out = (unsigned char *)list->scratch.at + scratch_len(prog);
    coll__prog_start(prog, &sig, in, out, stream);
    return coll__prog_look(prog, &moved);
}

/* If another rank has released the streams, wait a moment for its error message; this
 * rank has none then.  A rank with words of its own tells them at once, since the others
 * wait for them. */
int coll__programs_failed(struct coll_comm *comm, int rc)
{
    double until = coll__now() + NEWS_S;
    char why[COLL__TEXT_MAX];

    snprintf(why, sizeof(why), "%s", coll_last_error());
    while (!*why && coll__now() < until &&
           !atomic_load_explicit(&comm->failure.status, memory_order_acquire))
        usleep(200);
    return coll__comm_fail(comm, rc, "%s",
                           *why ? why
                                : "another rank has failed; see its messages");
}

/* An error that leaves a part of the plan in the stream releases all streams, since the
 * other ranks wait for the rest.  Then the communicator has failed. */
static int put_all(struct coll_comm *comm, const struct coll__stream_call *call,
                   void *stream)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;
    int rc = put(comm, call, stream);

    return rc && tp->ops->state(tp) != COLL_OK ? coll__programs_failed(comm, rc)
                                               : rc;
}

static int put_batch(struct coll_comm *comm, const struct coll__batch *batch)
{
    return are_messages(batch)
               ? coll__messages_put(comm, batch, &comm->stream->programs->kept)
               : put_all(comm, &batch->calls[0], batch->stream);
}

static void note(const struct coll__stream_programs *list,
                 const struct coll__batch *batch, uint32_t number)
{
    for (int i = 0; i < batch->n; i++) {
        struct coll__signature sig = coll__request_signature(
            &batch->calls[i].pb, &batch->calls[i].op, SERIES_STREAM);

        coll__watch_note(list->watch, sig, batch->calls[i].args.user_tag,
                         number);
    }
}

/* The watch is told before the enqueue, in which the driver may block the caller until
 * the stream moves. */
static int put_numbered(struct coll_comm *comm, struct coll__batch *batch)
{
    struct coll__watch *watch = comm->stream->programs->watch;
    struct coll__stage *stage = comm->stream->stage;
    uint32_t number = stage->last + 1;
    int rc = coll__stage_follow(stage, number - 1, batch->stream);

    if (rc)
        return rc;
    note(comm->stream->programs, batch, number);
    if (!are_messages(batch))
        comm->stream->programs->now->ticket = number;
    rc = put_batch(comm, batch);
    if (rc) {
        coll__watch_drop(watch, batch->n, number - 1);
        return rc;
    }
    batch->ticket = stage->last = number;
    return coll__stage_finish(stage, number, batch->stream);
}

/* What the graph that is being captured needs stays as long as there is the graph. */
static int hold(struct coll_comm *comm, const struct coll__batch *batch)
{
    struct coll__stream_programs *list = comm->stream->programs;
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int rc = coll__stream_scratch_hold(&list->scratch, batch->stream);

    if (rc == COLL_OK)
        rc = tp->ops->hold(tp, batch->stream);
    if (rc == COLL_OK && !are_messages(batch))
        rc = coll__cuda_held_add(&list->now->held, batch->stream);
    return rc;
}

int coll__programs_enqueue(struct coll_comm *comm, struct coll__batch *batch)
{
    int rc;

    if (comm->stream->gpu_view.nranks)
        batch->calls[0].pb.view = &comm->stream->gpu_view;
    rc = prepare(comm, batch);
    batch->ticket = comm->stream->stage->last;
    if (rc)
        return rc;
    if (!batch->place.is_captured)
        return put_numbered(comm, batch);
    rc = hold(comm, batch);
    if (rc)
        return rc;
    coll__watch_capture(comm->stream->programs->watch,
                        batch->calls[0].pb.collective);
    return put_batch(comm, batch);
}

int coll__programs_has_finished(const struct coll_comm *comm, uint32_t ticket)
{
    return coll__stage_is_at(comm->stream->stage, STAGE_FINISHED, ticket);
}

void coll__programs_bytes(const struct coll_comm *comm,
                          struct coll_mem_stats *stats)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;
    const struct coll__stream_programs *list = comm->stream->programs;

    if (tp)
        tp->ops->bytes(tp, stats);
    if (!list)
        return;
    coll__stream_program_bytes(&list->list, stats);
    stats->device += list->scratch.taken;
}

/* ---- the end ----------------------------------------------------------------- */

int coll__programs_is_behind(const struct coll_comm *comm)
{
    const struct coll__stream_programs *list = comm->stream->programs;

    return list && list->watch && coll__watch_is_behind(list->watch);
}

void coll__programs_leave(struct coll_comm *comm)
{
    if (comm->stream->programs && comm->stream->programs->watch)
        coll__watch_end(comm->stream->programs->watch);
}

void coll__stream_fail(struct coll_comm *comm, int status)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;

    if (tp)
        tp->ops->release(tp, status);
}

/* failure.lock keeps the transport there. */
void coll__stream_hear(struct coll_comm *comm)
{
    const struct coll__stream_tp *tp;
    int status = COLL_OK;

    pthread_mutex_lock(&comm->failure.lock);
    tp = comm->links.routes.streams;
    if (tp && !coll__comm_has_failed(comm))
        status = coll__stream_state(tp);
    pthread_mutex_unlock(&comm->failure.lock);
    if (status)
        coll__programs_failed(comm, status);
}

void coll__programs_free(struct coll_comm *comm)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    struct coll__stream_programs *list = comm->stream->programs;

    if (tp) {
        coll__programs_set(comm, NULL);
        tp->ops->close(tp, coll__comm_status(comm) == COLL_OK);
    }
    if (comm->stream->near)
        comm->stream->near->ops->close(comm->stream->near, 0);
    comm->stream->near = NULL;
    if (list) {
        coll__messages_forget(&list->kept);
        coll__stream_program_forget_all(&list->list);
        coll__stream_scratch_free(&list->scratch);
        coll__cuda_held_reclaim();
        free(list->watch);
    }
    free(list);
    comm->stream->programs = NULL;
}
