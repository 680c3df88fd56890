/* SPDX-License-Identifier: BSD-3-Clause */
/* staged_enqueue.c - the caller's part of the staged path: cut a batch into pieces and
 * enqueue them; staged.c describes the path. */
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/device/cuda.h"
#include "lib/device/device.h"
#include "lib/run/owner.h"
#include "lib/stream/calls.h"
#include "lib/stream/staged.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

/* ---- in the stream ----------------------------------------------------------- */

/* Enqueue the copies of piece k, into the slot or out of it. */
static int copy_in_stream(const struct coll__streams *s, struct coll__job *job,
                          uint32_t k, enum coll__buf buf, void *stream)
{
    unsigned char *slot =
        coll__stage_seen(job->slots, coll__slot_of(s, job, k));
    struct coll__cut_span span;
    int rc = COLL_OK;

    for (int i = 0; i < job->n_calls; i++) {
        const struct coll__stream_call *call = &job->calls[i];
        int is_in = buf == BUF_IN, part = 0;

        if (call->args.collective == COLL_BARRIER ||
            (is_in ? call->is_in_host : call->is_out_host))
            continue;
        while (rc == COLL_OK &&
               coll__cut_next(&call->cut, k, buf, &part, &span)) {
            struct coll__work work = {
                .kind = WORK_COPY, .len = span.len, .stream = stream};

            work.dst = is_in ? slot + span.here
                             : (unsigned char *)call->args.out + span.there;
            work.src = is_in ? (const unsigned char *)call->args.in + span.there
                             : slot + span.here;
            rc = coll__cuda_enqueue(&work);
        }
    }
    return rc;
}

static int put_in(const struct coll__streams *s, struct coll__job *job,
                  uint32_t k, void *stream)
{
    int rc = copy_in_stream(s, job, k, BUF_IN, stream);

    return rc ? rc
              : coll__cuda_write_flag(stream,
                                      coll__stage_flag(job->words, STAGE_READY),
                                      job->first + k);
}

static int take_out(const struct coll__streams *s, struct coll__job *job,
                    uint32_t k, void *stream)
{
    int rc = coll__cuda_wait_flag(
        stream, coll__stage_flag(job->words, STAGE_DONE), job->first + k);

    return rc ? rc : copy_in_stream(s, job, k, BUF_OUT, stream);
}

int coll__job_put_first(const struct coll__streams *s, struct coll__job *job,
                        void *stream)
{
    return put_in(s, job, 0, stream);
}

int coll__job_put_rest(const struct coll__streams *s, struct coll__job *job,
                       void *stream)
{
    uint32_t last = job->n - 1;
    int rc = COLL_OK;

    for (uint32_t k = 1; k <= last && rc == COLL_OK; k++) {
        rc = put_in(s, job, k, stream);
        if (rc == COLL_OK)
            rc = take_out(s, job, k - 1, stream);
    }
    return rc ? rc : take_out(s, job, last, stream);
}

static int begin_in_stream(const struct coll__streams *s, struct coll__job *job,
                           void *stream)
{
    int rc = coll__stage_follow(s->stage, job->first - 1, stream);

    return rc ? rc : coll__job_put_first(s, job, stream);
}

static int finish_in_stream(const struct coll__streams *s,
                            const struct coll__job *job, void *stream)
{
    return coll__stage_finish(s->stage, job->first + job->n - 1, stream);
}

static int go_on_in_stream(const struct coll__streams *s, struct coll__job *job,
                           void *stream)
{
    int rc = coll__job_put_rest(s, job, stream);

    return rc ? rc : finish_in_stream(s, job, stream);
}

/* ---- the batch --------------------------------------------------------------- */

static int too_small(const struct coll_comm *comm,
                     const struct coll__batch *batch)
{
    log_error("api",
              "%s: pieces for %d ranks, or %d messages side by side, do "
              "not fit the stage of %zu bytes; set COLL_CUDA_STAGE to more",
              coll_collective_name(batch->calls[0].args.collective), comm->size,
              batch->n, 2 * comm->stream->staged->slot_len);
    return COLL_ERR_UNSUPPORTED;
}

/* Share out a slot: all messages lie side by side, whole if they fit. */
static int cut_all(const struct coll_comm *comm,
                   const struct coll__batch *batch, struct coll__job *job)
{
    size_t slot_len = comm->stream->staged->slot_len, at = 0, sum = 0;
    size_t share = slot_len / (size_t)batch->n / CACHE_LINE * CACHE_LINE;

    for (int i = 0; i < batch->n && sum <= slot_len; i++)
        sum += round_up(coll__problem_bytes(&batch->calls[i].pb), CACHE_LINE);
    for (int i = 0; i < batch->n; i++) {
        const struct coll__problem *pb = &batch->calls[i].pb;
        size_t len = batch->n > 1 && sum <= slot_len
                         ? round_up(coll__problem_bytes(pb), CACHE_LINE)
                         : share;
        int rc = coll__cut_init(&job->calls[i].cut, pb, slot_len, at, len);

        if (rc == COLL_ERR_UNSUPPORTED)
            return too_small(comm, batch);
        if (rc) {
            log_error("api", "no memory for the counts of %d ranks",
                      comm->size);
            return rc;
        }
        at += len;
        job->n = job->calls[i].cut.n > job->n ? job->calls[i].cut.n : job->n;
    }
    return COLL_OK;
}

int coll__job_new(const struct coll_comm *comm, const struct coll__batch *batch,
                  struct coll__job **out)
{
    enum coll_collective collective = batch->calls[0].args.collective;
    struct coll__job *job = calloc(1, sizeof(*job));
    int rc;

    if (!job)
        goto fail;
    job->capacity =
        coll__is_p2p(collective) ? 2 * COLL__CUT_UNITS + batch->n : 1;
    job->running = calloc((size_t)job->capacity, sizeof(*job->running));
    job->calls = calloc((size_t)batch->n, sizeof(*job->calls));
    if (!job->running || !job->calls)
        goto fail;
    memcpy(job->calls, batch->calls, (size_t)batch->n * sizeof(*job->calls));
    for (int i = 0; i < batch->n; i++)
        job->calls[i].cut.numbers = NULL;
    job->n_calls = batch->n;
    job->asks = coll__has_own_counts(collective) && comm->size > 1;
    rc = cut_all(comm, batch, job);
    if (rc) {
        coll__job_free(job);
        return rc;
    }
    job->n_all = job->n;
    atomic_store(&job->n_users, 2);
    *out = job;
    return COLL_OK;

fail:
    log_error("api", "no memory for an operation of a stream");
    if (job) {
        free(job->running);
        free(job->calls);
    }
    free(job);
    return COLL_ERR_NOMEM;
}

/* Publish the job: from now on the host works on it, and an abort releases the stream. */
static int publish(struct coll_comm *comm, struct coll__job *job)
{
    struct coll__streams *s = comm->stream->staged;
    int rc;

    coll__owner_acquire(comm);
    rc = coll__comm_status(comm);
    if (rc == COLL_OK) {
        *s->last = job;
        s->last = &job->next;
        comm->run->n_running++;
        comm->run->n_streaming++;
        s->published = job->first + job->n - 1;
    }
    coll__owner_release(comm);
    coll__sleep_news();
    return rc;
}

static int staged_enqueue(struct coll_comm *comm, struct coll__batch *batch)
{
    struct coll__streams *s = comm->stream->staged;
    struct coll__job *job;
    int rc;

    batch->ticket = s->stage->last;
    if (batch->is_captured)
        return coll__captured_put(comm, batch);
    rc = coll__job_new(comm, batch, &job);
    if (rc)
        return rc;
    job->slots = job->words = s->stage;
    job->first = s->stage->last + 1;
    rc = begin_in_stream(s, job, batch->stream);
    if (rc) {
        coll__job_free(job);
        return rc;
    }
    s->stage->last += job->n;
    batch->ticket = s->stage->last;
    rc = publish(comm, job);
    if (rc == COLL_OK) {
        rc = go_on_in_stream(s, job, batch->stream);
        if (rc)
            coll__comm_fail(comm, rc, "%s", coll_last_error());
    } else {
        finish_in_stream(s, job, batch->stream);
        coll__job_drop(job);
    }
    coll__job_drop(job);
    return rc;
}

static int staged_serves(const struct coll_comm *comm,
                         const struct coll__batch *batch)
{
    (void)comm;
    (void)batch;
    return 1;
}

static int staged_has_finished(const struct coll_comm *comm, uint32_t ticket)
{
    return coll__stage_is_at(comm->stream->staged->stage, STAGE_FINISHED,
                             ticket);
}

const struct coll__path coll__path_staged = {
    .name = "staged",
    .serves = staged_serves,
    .enqueue = staged_enqueue,
    .has_finished = staged_has_finished,
};
