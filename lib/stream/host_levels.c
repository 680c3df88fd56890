/* SPDX-License-Identifier: BSD-3-Clause */
/* host_levels.c - the path of operations on GPUs of several hosts: from GPU to GPU within
 * each host, and through the hosts' memory between them.
 *
 * A communicator with n ranks on each of h hosts has two sub-communicators (subcomms.h).
 * `Inside` has the ranks of this host; their streams work alone (programs.c).  `Across`
 * has the ranks with this rank's local number, one on each host (staged.c).  A call
 * becomes about three calls on these, one after the other in the caller's stream.  An
 * allreduce is a reduce-scatter inside, an allreduce across of this rank's part, and
 * an allgather inside.  So each byte passes through a host's memory once; it would pass n
 * times if each GPU sent its whole buffer.
 *
 * This pays for large calls (COLL_CUDA_LEVELS).  Small calls, and calls that are not
 * split here, take the staged path.  Calls of both paths follow each other by the numbers
 * of the communicator's stage, as those of programs.c do.
 */
#include "lib/stream/host_levels.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/comm/split.h"
#include "lib/device/cuda.h"
#include "lib/device/device.h"
#include "lib/stream/calls.h"
#include "lib/stream/subcomms.h"
#include "lib/stream/staged.h"
#include "lib/stream/stream_scratch.h"
#include "lib/topo/peer.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN 64 /* elements; each part of a vector begins at a multiple of it */

struct coll__levels {
    int n_hosts, n_local;
    int host, local; /* this rank's number across, and inside */
    int *ranks; /* [n_hosts * n_local]: the ranks of a host are neighbours */
    int is_in_order;         /* ranks[i] == i */
    size_t *counts, *displs; /* arrays for a call across or inside */
    struct coll__stream_scratch scratch;
};

/* ---- joining ----------------------------------------------------------------- */

static void levels_free(struct coll__levels *levels)
{
    if (!levels)
        return;
    free(levels->ranks);
    free(levels->counts);
    free(levels->displs);
    free(levels);
}

static struct coll__levels *levels_new(const struct coll_comm *comm)
{
    const struct coll__peer *me = &comm->peers[comm->rank];
    size_t n = (size_t)comm->size;
    struct coll__levels *levels = calloc(1, sizeof(*levels));

    if (!levels)
        return NULL;
    levels->ranks = malloc(n * sizeof(*levels->ranks));
    levels->counts = malloc(n * sizeof(*levels->counts));
    levels->displs = malloc(n * sizeof(*levels->displs));
    if (!levels->ranks || !levels->counts || !levels->displs) {
        levels_free(levels);
        return NULL;
    }
    levels->n_hosts = comm->n_hosts;
    levels->n_local = me->local_size;
    levels->host = me->host;
    levels->local = me->local_rank;
    levels->is_in_order = 1;
    for (int r = 0; r < comm->size; r++) {
        const struct coll__peer *peer = &comm->peers[r];
        int at = peer->host * levels->n_local + peer->local_rank;

        levels->ranks[at] = r;
        levels->is_in_order &= at == r;
    }
    return levels;
}

/* Do all hosts have the same number of ranks, more than one? */
static int is_even(const struct coll_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (comm->peers[r].local_size != comm->peers[0].local_size)
            return 0;
    return comm->peers[0].local_size > 1;
}

static int split(struct coll_comm *comm, struct coll_comm *parts[])
{
    static const char who[] = "coll_comm_create";
    const struct coll__peer *me = &comm->peers[comm->rank];
    struct coll__split intra = {.color = me->host, .key = me->local_rank};
    struct coll__split inter = {.color = me->local_rank, .key = me->host};
    int rc = coll__comm_split(comm, who, &intra, &parts[SUBCOMM_INTRA]);

    if (rc == COLL_OK)
        rc = coll__comm_split(comm, who, &inter, &parts[SUBCOMM_INTER]);
    coll__log_set_rank(comm->rank, comm->size);
    return rc;
}

/* Are the devices of all hosts joined?  Else *no_streams says why not. */
static int agree(struct coll_comm *comm, const struct coll_comm *inside,
                 int *are_joined)
{
    size_t len = sizeof(comm->stream->no_streams);
    char(*all)[sizeof(comm->stream->no_streams)] =
        malloc((size_t)comm->size * len);
    char mine[sizeof(comm->stream->no_streams)] = "";
    int rc;

    *are_joined = 1;
    if (!all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    if (!inside->links.routes.streams)
        snprintf(mine, sizeof(mine), "%s", inside->stream->no_streams);
    rc = coll__comm_exchange(comm, mine, len, all);
    for (int r = 0; r < comm->size && rc == COLL_OK && *are_joined; r++) {
        *are_joined = !all[r][0];
        if (all[r][0])
            snprintf(comm->stream->no_streams, len, "on rank %d's host %.200s",
                     r, all[r]);
    }
    free(all);
    return rc;
}

/* Unless the status is COLL_OK, do not wait for the other ranks.  Destroying a
 * communicator may also return an error of an earlier one (destroy.c), which is no
 * failure of this one. */
static void end_parts(struct coll_comm *parts[], int status)
{
    for (int i = 0; i < N_SUBCOMMS; i++) {
        if (parts[i] && status)
            coll__comm_set_failure(parts[i], status, coll_last_error());
        if (parts[i] && coll__subcomm_destroy(parts[i]) && !status)
            log_warn("comm", "%s", coll_last_error());
    }
}

static int stay_apart(const struct coll_comm *comm)
{
    log_info("comm", "GPU buffers pass through the host: %s",
             comm->stream->no_streams);
    return COLL_OK;
}

int coll__stream_join_hosts(struct coll_comm *comm)
{
    struct coll_comm *parts[N_SUBCOMMS] = {NULL};
    struct coll__levels *levels = NULL;
    int are_joined = 0, rc;

    if (!is_even(comm))
        return stay_apart(comm);
    rc = split(comm, parts);
    if (rc == COLL_OK)
        rc = agree(comm, parts[SUBCOMM_INTRA], &are_joined);
    if (rc == COLL_OK && are_joined) {
        levels = levels_new(comm);
        rc = levels ? coll__subcomms_make(comm, parts) : COLL_ERR_NOMEM;
    }
    if (rc || !are_joined) {
        levels_free(levels);
        end_parts(parts, rc);
        return rc ? rc : stay_apart(comm);
    }
    parts[SUBCOMM_INTRA]->settings.stage = 0; /* it has words there alone */
    parts[SUBCOMM_INTER]->timeout *= 1.5;     /* inside they know who is late */
    comm->stream->levels = levels;
    log_info("comm",
             "GPU buffers of %llu bytes and more go from GPU to GPU "
             "within each host",
             (unsigned long long)comm->settings.levels_min);
    return COLL_OK;
}

/* ---- calls of the parts -------------------------------------------------------- */

/* A call while it is enqueued. */
struct splitting {
    struct coll_comm *comm;
    struct coll__levels *levels;
    const struct coll__stream_call *call;
    size_t size;     /* of an element */
    enum coll_op op; /* on what is reduced already */
    int is_captured;
};

static unsigned char *at(const struct splitting *s, const void *buf,
                         size_t element)
{
    return (unsigned char *)buf + element * s->size;
}

/* The stream's work so far is no work of `inside`, so no rank inside is late with it. */
static int begin_inside(const struct splitting *s)
{
    return s->is_captured ? COLL_OK
                          : coll__stream_pass(
                                coll__subcomm(s->comm, SUBCOMM_INTRA),
                                coll_collective_name(s->call->args.collective),
                                s->call->args.stream);
}

static int put(const struct splitting *s, int part, struct coll_args args)
{
    const struct coll_args *whole = &s->call->args;

    args.size = sizeof(args);
    args.type = whole->type;
    args.stream = whole->stream;
    return coll__stream_put(coll__subcomm(s->comm, part), &args);
}

/* Enqueue a call across.  No rank inside counts as late until that call has ended. */
static int put_across(const struct splitting *s, struct coll_args args)
{
    int rc = put(s, SUBCOMM_INTER, args);

    return rc ? rc : begin_inside(s);
}

/* An average is a sum inside and across, and is divided once. */
static int divide(const struct splitting *s, void *out, size_t count)
{
    struct coll__work work = {.kind = WORK_SCALE,
                              .dst = out,
                              .len = count * s->size,
                              .type = s->call->args.type,
                              .op = COLL_AVG,
                              .nranks = s->comm->size,
                              .stream = s->call->args.stream};

    return s->call->op.base == COLL_AVG && work.len ? coll__cuda_enqueue(&work)
                                                    : COLL_OK;
}

/* Does scale_input() scale?  An average of f16 or bf16 is scaled for all ranks at once
 * (coll__op_for()), and is a sum then. */
static int is_scaled(const struct splitting *s)
{
    return s->call->op.is_premul && s->call->op.base == COLL_AVG;
}

/* Return the operation of the first step: the caller's if it scales the input, else
 * s->op. */
static enum coll_op first_op(const struct splitting *s)
{
    return s->call->op.is_premul && !is_scaled(s) ? s->call->args.op : s->op;
}

/* Return in *in what the first step reads: the caller's input, or `count` elements at
 * `to`, which may be the caller's input too. */
static int scale_input(const struct splitting *s, void *to, size_t count,
                       const void **in)
{
    struct coll__work work = {.kind = WORK_PREMUL,
                              .dst = to,
                              .src = s->call->args.in,
                              .len = count * s->size,
                              .type = s->call->args.type,
                              .scalar = s->call->op.scalar,
                              .stream = s->call->args.stream};

    *in = s->call->args.in;
    if (!is_scaled(s) || !count)
        return COLL_OK;
    *in = to;
    return coll__cuda_enqueue(&work);
}

/* ---- each of them -------------------------------------------------------------- */

/* Cut a vector into one part for each rank inside; this rank's begins at *first. */
static size_t cut(const struct splitting *s, size_t *first)
{
    struct coll__levels *l = s->levels;
    size_t count = s->call->args.count, n = (size_t)l->n_local;
    size_t most = round_up((count + n - 1) / n, GRAIN), from = 0;

    for (int j = 0; j < l->n_local; j++) {
        l->counts[j] = min_size(most, count - from);
        l->displs[j] = from;
        from += l->counts[j];
    }
    *first = l->displs[l->local];
    return l->counts[l->local];
}

static int put_allreduce(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    size_t first, n = cut(s, &first);
    void *mine = at(s, a->out, first);
    struct coll_args scatter = {.collective = COLL_REDUCE_SCATTERV,
                                .op = first_op(s),
                                .out = mine,
                                .in_counts = s->levels->counts};
    struct coll_args reduce = {.collective = COLL_ALLREDUCE,
                               .op = s->op,
                               .in = mine,
                               .out = mine,
                               .count = n};
    struct coll_args gather = {.collective = COLL_ALLGATHERV,
                               .in = mine,
                               .out = a->out,
                               .count = n,
                               .out_counts = s->levels->counts,
                               .out_displs = s->levels->displs};
    int rc = scale_input(s, a->out, a->count, &scatter.in);

    if (rc == COLL_OK)
        rc = put(s, SUBCOMM_INTRA, scatter);
    if (rc == COLL_OK && n)
        rc = put_across(s, reduce);
    if (rc == COLL_OK)
        rc = divide(s, mine, n);
    return rc ? rc : put(s, SUBCOMM_INTRA, gather);
}

/* The ranks with the root's local number broadcast across; then each does inside. */
static int put_broadcast(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    const struct coll__peer *root = &s->comm->peers[a->root];
    int is_first = s->levels->local == root->local_rank, rc = COLL_OK;
    struct coll_args args = {.collective = COLL_BROADCAST,
                             .in = a->in,
                             .out = a->out,
                             .count = a->count,
                             .root = root->host};

    if (is_first)
        rc = put_across(s, args);
    args.root = root->local_rank;
    args.in = a->out;
    return rc ? rc : put(s, SUBCOMM_INTRA, args);
}

/* The root may call in place, so earlier steps write into its output buffer too. */
static int put_reduce(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    const struct coll__peer *root = &s->comm->peers[a->root];
    int is_last = s->levels->local == root->local_rank;
    int is_root = s->comm->rank == a->root;
    void *sum = is_root ? a->out : s->levels->scratch.at;
    struct coll_args args = {.collective = COLL_REDUCE,
                             .op = first_op(s),
                             .out = is_last ? sum : NULL,
                             .count = a->count,
                             .root = root->local_rank};
    int rc = scale_input(s, sum, a->count, &args.in);

    if (rc == COLL_OK)
        rc = put(s, SUBCOMM_INTRA, args);
    if (rc || !is_last)
        return rc;
    args.op = s->op;
    args.in = sum;
    args.out = is_root ? sum : NULL;
    args.root = root->host;
    rc = put_across(s, args);
    return rc || !is_root ? rc : divide(s, a->out, a->count);
}

/* Set the places of the blocks of the ranks on `host`; if `host` is -1, of the ranks
 * across. */
static void lay_out(const struct splitting *s, int host)
{
    struct coll__levels *l = s->levels;
    size_t count = s->call->args.count;
    int n = host < 0 ? l->n_hosts : l->n_local;

    for (int i = 0; i < n; i++) {
        int rank = host < 0 ? l->ranks[i * l->n_local + l->local]
                            : l->ranks[host * l->n_local + i];

        l->counts[i] = count;
        l->displs[i] = (size_t)rank * count;
    }
}

static int put_allgather(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    struct coll__levels *l = s->levels;
    struct coll_args args = {.collective = COLL_ALLGATHERV,
                             .in = a->in,
                             .out = a->out,
                             .count = a->count,
                             .out_counts = l->counts,
                             .out_displs = l->displs};
    int rc;

    lay_out(s, -1);
    rc = put_across(s, args);
    for (int host = 0; host < l->n_hosts && rc == COLL_OK; host++) {
        lay_out(s, host);
        args.in = at(s, a->out, l->displs[l->local]);
        rc = put(s, SUBCOMM_INTRA, args);
    }
    return rc;
}

/* The elements of a reduce-scatter's sums in the scratch; the scaled input is behind
 * them. */
static size_t sums_count(const struct splitting *s)
{
    return round_up((size_t)s->levels->n_hosts * s->call->args.count, GRAIN);
}

/* The blocks of this host's ranks for one rank across lie side by side. */
static int put_reduce_scatter(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    struct coll__levels *l = s->levels;
    unsigned char *sums = l->scratch.at;
    size_t of_host = (size_t)l->n_local * a->count;
    struct coll_args args = {.collective = COLL_REDUCE_SCATTER,
                             .op = first_op(s),
                             .count = a->count};
    const void *in;
    int rc = scale_input(s, at(s, sums, sums_count(s)),
                         (size_t)s->comm->size * a->count, &in);

    for (int host = 0; host < l->n_hosts && rc == COLL_OK; host++) {
        args.in = at(s, in, (size_t)host * of_host);
        args.out = at(s, sums, (size_t)host * a->count);
        rc = put(s, SUBCOMM_INTRA, args);
    }
    if (rc)
        return rc;
    args.op = s->op;
    args.in = sums;
    args.out = a->out;
    rc = put_across(s, args);
    return rc ? rc : divide(s, a->out, a->count);
}

static size_t scratch_len(const struct splitting *s)
{
    const struct coll_args *a = &s->call->args;
    int is_last;

    switch (a->collective) {
    case COLL_REDUCE:
        is_last = s->comm->peers[a->root].local_rank == s->levels->local;
        return s->comm->rank != a->root && (is_last || is_scaled(s))
                   ? a->count * s->size
                   : 0;
    case COLL_REDUCE_SCATTER:
        return s->size *
               (sums_count(s) +
                (is_scaled(s) ? (size_t)s->comm->size * a->count : 0));
    default:
        return 0;
    }
}

static int put_parts(const struct splitting *s)
{
    switch (s->call->args.collective) {
    case COLL_ALLREDUCE:
        return put_allreduce(s);
    case COLL_BROADCAST:
        return put_broadcast(s);
    case COLL_REDUCE:
        return put_reduce(s);
    case COLL_ALLGATHER:
        return put_allgather(s);
    default:
        return put_reduce_scatter(s);
    }
}

/* ---- the path ------------------------------------------------------------------ */

static int is_split(const struct coll_comm *comm, const struct coll_args *args)
{
    switch (args->collective) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
        return !comm->settings.is_reproducible;
    case COLL_REDUCE_SCATTER:
        return !comm->settings.is_reproducible &&
               comm->stream->levels->is_in_order;
    case COLL_BROADCAST:
    case COLL_ALLGATHER:
        return 1;
    default:
        return 0;
    }
}

static int levels_serves(const struct coll_comm *comm,
                         const struct coll__batch *batch)
{
    const struct coll__stream_call *call = &batch->calls[0];

    return comm->stream->levels && is_split(comm, &call->args) &&
           !call->op.fn && !call->args.algo && !comm->settings.plans &&
           coll__problem_total(&call->pb) >= comm->settings.levels_min;
}

/* If an error leaves a part of the call in the stream, the other ranks wait for the rest,
 * so the communicator fails.  A captured call is not running yet. */
static int put_all(const struct splitting *s)
{
    int rc = begin_inside(s);

    if (rc == COLL_OK)
        rc = put_parts(s);
    return rc && !s->is_captured
               ? coll__comm_fail(s->comm, rc, "%s", coll_last_error())
               : rc;
}

static int levels_enqueue(struct coll_comm *comm, struct coll__batch *batch)
{
    const struct coll__stream_call *call = &batch->calls[0];
    struct coll__streams *streams = comm->stream->staged;
    struct splitting s = {.comm = comm,
                          .levels = comm->stream->levels,
                          .call = call,
                          .size = coll_type_size(call->args.type),
                          .op = call->op.base == COLL_AVG ? COLL_SUM
                                                          : call->op.base,
                          .is_captured = batch->is_captured};
    uint32_t number = streams->stage->last + 1;
    int rc = coll__stream_scratch_have(&comm->stream->levels->scratch,
                                       scratch_len(&s));

    batch->ticket = streams->stage->last;
    if (rc == COLL_OK && batch->is_captured)
        return put_all(&s);
    if (rc == COLL_OK)
        rc = coll__stage_follow(streams->stage, number - 1, batch->stream);
    if (rc == COLL_OK)
        rc = put_all(&s);
    if (rc)
        return rc;
    batch->ticket = streams->stage->last = number;
    return coll__stage_finish(streams->stage, number, batch->stream);
}

static int levels_has_finished(const struct coll_comm *comm, uint32_t ticket)
{
    return coll__stage_is_at(comm->stream->staged->stage, STAGE_FINISHED,
                             ticket);
}

const struct coll__path coll__path_levels = {
    .name = "levels",
    .is_watched = 1,
    .serves = levels_serves,
    .enqueue = levels_enqueue,
    .has_finished = levels_has_finished,
};

/* ---- the end ------------------------------------------------------------------- */

void coll__levels_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats)
{
    if (comm->stream->levels)
        stats->device += comm->stream->levels->scratch.taken;
}

void coll__levels_free(struct coll_comm *comm)
{
    if (comm->stream->levels)
        coll__stream_scratch_free(&comm->stream->levels->scratch);
    levels_free(comm->stream->levels);
    comm->stream->levels = NULL;
}
