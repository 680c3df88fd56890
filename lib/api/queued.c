/* SPDX-License-Identifier: BSD-3-Clause */
/* queued.c - operations of streams that need no host: the devices of all ranks of one
 * host are joined while the communicator is made, and a call puts its whole plan into
 * the stream (lib/exec/queued.c).
 *
 * A program is made at the first call of a shape.  Runs of a communicator follow each
 * other, whatever their streams and their path: each but a captured one takes a number
 * on the stage, as batches of the staged path do, waits for the one before and says
 * when the stream has passed it.  So programs share their scratch.  Of a captured run
 * nothing is numbered: it may be launched any number of times, in the order that the
 * caller sees to.
 *
 * Nobody compares what the ranks call: that takes a host (COLL_CUDA_ENGINE=staged).
 */
#include "lib/api/queued.h"
#include "lib/api/staged.h"
#include "lib/device/cuda_kernels.h"
#include "lib/price/select.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "transports/stream.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PROGRAMS 128

extern const struct coll__device coll__device_cuda;

/* Of one shape of calls. */
struct program {
    struct program *next;
    struct coll__problem pb; /* its arrays are `numbers` */
    struct coll__op op;
    const struct coll__algo *algo;
    size_t *numbers;
    struct coll__prog *prog;
};

/* Memory of the device; what has become too small stays until the end, since streams
 * may be at it, and the driver waits for streams when it frees. */
struct scratch {
    struct scratch *next;
    void *at;
    size_t len;
};

struct coll__queued_list {
    struct program *programs; /* the one used last is first */
    int n_programs;
    struct scratch *scratch; /* the largest is first */
};

/* ---- joining ----------------------------------------------------------------- */

int coll__stream_has_device(void)
{
    return coll__cuda_image[0] && /* else there are no kernels */
           strcmp(coll__param_text(PARAM_CUDA_ENGINE), "staged") &&
           coll__cuda_has_context();
}

/* The first rank that this one does not reach; or -1. */
static int first_missing(struct coll_comm *comm, char *why, size_t len)
{
    const struct coll__stream_tp *tp = comm->routes.streams;

    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank && tp->ops->reaches(tp, r, why, len))
            return r;
    return -1;
}

/* Others find out that the communicator has failed, and let its streams go. */
static void set_streams(struct coll_comm *comm, struct coll__stream_tp *tp)
{
    int status;

    pthread_mutex_lock(&comm->failure.lock);
    comm->routes.streams = tp;
    status = atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
    if (tp && status)
        tp->ops->release(tp, status);
    pthread_mutex_unlock(&comm->failure.lock);
}

/* All use them, or nobody; collective. */
static int agree(struct coll_comm *comm)
{
    struct coll__stream_tp *tp = comm->routes.streams;
    char why[160] = "";
    int32_t mine = first_missing(comm, why, sizeof(why)), from = 0;
    int32_t *all = malloc((size_t)comm->size * sizeof(*all));
    int rc = all ? COLL_OK : COLL_ERR_NOMEM;

    if (rc)
        log_error("comm", "no memory for %d ranks", comm->size);
    else
        rc = coll__comm_exchange(comm, &mine, sizeof(mine), all);
    while (rc == COLL_OK && from < comm->size && all[from] < 0)
        from++;
    if (rc == COLL_OK && from < comm->size) {
        snprintf(comm->no_streams, sizeof(comm->no_streams),
                 "rank %d's GPU does not reach rank %d's%s%s", from, all[from],
                 *why ? ": here, " : "", why);
        log_info("comm", "GPU buffers pass through the host: %s",
                 comm->no_streams);
        set_streams(comm, NULL);
        tp->ops->close(tp, 1);
    }
    free(all);
    return rc;
}

int coll__stream_join(struct coll_comm *comm)
{
    struct coll__tp_env env = {comm->rank,           comm->size, comm->peers,
                               coll__comm_exchange,  comm,       comm->timeout,
                               &comm->failure.status};
    struct coll__stream_tp *tp;
    int rc = coll__stream_cuda_ipc.open(&env, NULL, &tp);

    if (rc)
        return rc;
    set_streams(comm, tp);
    comm->queued = calloc(1, sizeof(*comm->queued));
    if (!comm->queued) {
        log_error("comm", "no memory for a communicator's streams");
        return COLL_ERR_NOMEM;
    }
    return agree(comm);
}

/* ---- programs ---------------------------------------------------------------- */

static void program_free(struct program *program)
{
    coll__prog_destroy(program->prog);
    free(program->numbers);
    free(program);
}

static int are_alike(const size_t *a, const size_t *b, int n)
{
    return a == b || (a && b && !memcmp(a, b, (size_t)n * sizeof(*a)));
}

static int is_for(const struct program *program,
                  const struct coll__stream_call *call,
                  const struct coll__algo *algo)
{
    const struct coll__problem *a = &program->pb, *b = &call->pb;
    const struct coll__op *op = &program->op;
    int n = b->nranks;

    return program->algo == algo && a->collective == b->collective &&
           a->type == b->type && a->op == b->op && a->root == b->root &&
           a->count == b->count && a->in_place == b->in_place &&
           op->base == call->op.base && op->is_premul == call->op.is_premul &&
           !memcmp(op->scalar, call->op.scalar, sizeof(op->scalar)) &&
           are_alike(a->in_counts, b->in_counts, n) &&
           are_alike(a->in_displs, b->in_displs, n) &&
           are_alike(a->out_counts, b->out_counts, n) &&
           are_alike(a->out_displs, b->out_displs, n);
}

static int program_new(struct coll_comm *comm,
                       const struct coll__stream_call *call,
                       const struct coll__algo *algo, struct program **out)
{
    const struct coll__stream_tp *tp = comm->routes.streams;
    struct coll__room room = {tp->n_slots, tp->slot};
    struct program *program = calloc(1, sizeof(*program));
    struct coll__binding to = {program ? &program->op : NULL, &comm->routes,
                               &coll__device_cuda, 0, 1};
    struct coll__plan plan;
    int rc = COLL_ERR_NOMEM;

    if (program) {
        program->pb = call->pb;
        program->op = call->op;
        program->algo = algo;
        rc = coll__request_numbers(&program->pb, &program->numbers);
    }
    if (rc)
        log_error("api", "no memory for an operation of a stream");
    else
        rc = coll__plan_build_in_turns(algo, &program->pb, &room, &plan);
    if (rc == COLL_OK)
        rc = coll__prog_create(&program->pb, &plan, &to, &program->prog);
    if (rc == COLL_OK && !coll__prog_is_queued(program->prog)) {
        log_error("api", "%s: the plan of %s does not suit streams",
                  coll_collective_name(call->pb.collective), algo->name);
        rc = COLL_ERR_INTERNAL;
    }
    if (rc == COLL_OK) {
        *out = program;
    } else if (program) {
        program_free(program);
    }
    return rc;
}

/* The one used longest ago goes; its streams need nothing of it any more. */
static void forget_last(struct coll__queued_list *list)
{
    struct program **at = &list->programs;

    while ((*at)->next)
        at = &(*at)->next;
    program_free(*at);
    *at = NULL;
    list->n_programs--;
}

/* Find the call's program, or make it; it becomes the first. */
static int have_program(struct coll_comm *comm,
                        const struct coll__stream_call *call,
                        const struct coll__algo *algo)
{
    struct coll__queued_list *list = comm->queued;
    struct program **at = &list->programs, *program;
    int rc;

    while (*at && !is_for(*at, call, algo))
        at = &(*at)->next;
    program = *at;
    if (program) {
        *at = program->next;
    } else {
        rc = program_new(comm, call, algo, &program);
        if (rc)
            return rc;
        list->n_programs++;
    }
    program->next = list->programs;
    list->programs = program;
    if (list->n_programs > MOST_PROGRAMS)
        forget_last(list);
    return COLL_OK;
}

static int have_scratch(struct coll__queued_list *list, size_t len)
{
    struct scratch *scratch;
    size_t had = list->scratch ? list->scratch->len : 0;

    if (len <= had)
        return COLL_OK;
    scratch = malloc(sizeof(*scratch));
    if (!scratch) {
        log_error("api", "no memory for an operation of a stream");
        return COLL_ERR_NOMEM;
    }
    scratch->len = max_size(len, 2 * had);
    scratch->at = coll__device_cuda.alloc(scratch->len);
    if (!scratch->at) {
        free(scratch);
        return COLL_ERR_NOMEM;
    }
    scratch->next = list->scratch;
    list->scratch = scratch;
    return COLL_OK;
}

/* ---- calls ------------------------------------------------------------------- */

/* What is left to the staged path: messages, which two ranks alone know of, functions
 * of the caller, plans from files, and what the communicator cannot do. */
static int queued_serves(const struct coll_comm *comm,
                         const struct coll__batch *batch)
{
    const struct coll__stream_call *call = &batch->calls[0];

    return comm->routes.streams && !comm->settings.plans &&
           !coll__is_p2p(call->pb.collective) && !call->op.fn;
}

/* A barrier's token lies behind its scratch. */
static int put(struct coll_comm *comm, const struct coll__stream_call *call,
               void *stream)
{
    struct coll__prog *prog = comm->queued->programs->prog;
    size_t scratch = round_up(coll__prog_scratch(prog), CACHE_LINE);
    int is_barrier = call->pb.collective == COLL_BARRIER, moved;
    int rc =
        have_scratch(comm->queued, scratch + (is_barrier ? CACHE_LINE : 0));
    struct coll__head head = {.seq = 0};
    const void *in = call->args.in;
    void *out = call->args.out;

    if (rc)
        return rc;
    if (scratch)
        coll__prog_lend(prog, comm->queued->scratch->at);
    if (is_barrier)
        in = out = (unsigned char *)comm->queued->scratch->at + scratch;
    coll__prog_start(prog, &head, in, out, stream);
    return coll__prog_look(prog, &moved);
}

/* From here on the communicator has something under way, until the stream has passed
 * that number. */
static void have_watched(struct coll_comm *comm, uint32_t number)
{
    struct coll__streams *s = comm->streams;

    coll__turn_take(comm);
    if (!s->is_watched && !comm->is_quiet) {
        s->is_watched = 1;
        comm->n_running++;
        comm->n_streaming++;
    }
    s->watched = number;
    coll__turn_give(comm);
    coll__sleep_news();
}

static int queued_enqueue(struct coll_comm *comm, struct coll__batch *batch)
{
    const struct coll__stream_call *call = &batch->calls[0];
    struct coll__streams *s = comm->streams;
    const struct coll__algo *algo;
    uint32_t number = s->stage->last + 1;
    int rc = coll__request_choose(comm, &call->args, &call->pb, &algo);

    if (rc == COLL_OK)
        rc = have_program(comm, call, algo);
    if (rc == COLL_OK && !batch->is_captured)
        rc = coll__stage_follow(s, number - 1, batch->stream);
    if (rc == COLL_OK)
        rc = put(comm, call, batch->stream);
    batch->ticket = s->stage->last;
    if (rc || batch->is_captured)
        return rc;
    batch->ticket = s->stage->last = number;
    rc = coll__stage_finish(s, number, batch->stream);
    have_watched(comm, number);
    return rc;
}

static int queued_has_finished(const struct coll_comm *comm, uint32_t ticket)
{
    return coll__stage_is_at(comm->streams->stage, STAGE_FINISHED, ticket);
}

const struct coll__path coll__path_queued = {
    .name = "queued",
    .can_be_captured = 1,
    .serves = queued_serves,
    .enqueue = queued_enqueue,
    .has_finished = queued_has_finished,
};

/* ---- the end ----------------------------------------------------------------- */

void coll__stream_fail(struct coll_comm *comm, int status)
{
    struct coll__stream_tp *tp = comm->routes.streams;

    if (tp)
        tp->ops->release(tp, status);
}

void coll__queued_free(struct coll_comm *comm)
{
    struct coll__stream_tp *tp = comm->routes.streams;
    struct coll__queued_list *list = comm->queued;

    if (tp) {
        set_streams(comm, NULL);
        tp->ops->close(tp, coll__comm_status(comm) == COLL_OK);
    }
    while (list && list->programs)
        forget_last(list);
    while (list && list->scratch) {
        struct scratch *scratch = list->scratch;

        list->scratch = scratch->next;
        coll__device_cuda.free(scratch->at, scratch->len);
        free(scratch);
    }
    free(list);
    comm->queued = NULL;
}
