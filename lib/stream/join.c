/* SPDX-License-Identifier: BSD-3-Clause */
/* join.c - joins the ranks' devices.  Those that reach each other do so directly
 * (transports/cuda_ipc.h).  Between others the host carries messages
 * (transports/proxy.h), if every rank's streams can do their part. */
#include "lib/comm/comm.h"
#include "lib/comm/links.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_stage.h"
#include "lib/device/cuda_stream.h"
#include "lib/stream/calls.h"
#include "lib/stream/gpu_view.h"
#include "lib/stream/programs.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "transports/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINNED_MOST ((size_t)64 << 20) /* bytes */
#define SLOT_LEAST ((size_t)64 << 10)  /* bytes */
#define SLOT_UNIT ((size_t)64)
#define MOST_SLOTS 64

/* What each rank says. */
struct offer {
    int32_t status;   /* can its streams do their part, */
    int32_t can_copy; /* or at least copy? */
    int32_t n;        /* slots between two ranks, */
    uint64_t len;     /* of so many bytes, as ranks of its host share them */
    char why[160];
};

/* ---- who reaches whom ------------------------------------------------------------- */

enum coll__lack coll__stream_lacks(void)
{
    char why[512];

    if (!coll__cuda_has_context())
        return atomic_load(&coll__device_is_here) ? LACKS_CONTEXT
                                                  : LACKS_DRIVER;
    if (coll__device_cuda.usable(why, sizeof(why)))
        return LACKS_START;
    return coll__cuda_image[0] ? LACKS_NOTHING : LACKS_KERNELS;
}

/* What a rank says of the others. */
struct reach {
    int32_t missing; /* the first rank that it does not reach, or -1 */
    char why[192];
};

static struct reach reach_of(const struct coll_comm *comm,
                             const struct coll__stream_tp *tp)
{
    struct reach reach = {.missing = -1};

    for (int r = 0; r < comm->size && reach.missing < 0; r++)
        if (r != comm->rank &&
            tp->ops->reaches(tp, r, reach.why, sizeof(reach.why)))
            reach.missing = r;
    return reach;
}

/* Find the first rank whose GPU does not reach all others.  *from: that rank, or size;
 * collective. */
static int find_missing(struct coll_comm *comm,
                        const struct coll__stream_tp *tp, int *from)
{
    struct reach mine = reach_of(comm, tp);
    int rc;
    struct reach *all = coll__comm_exchange_new(comm, &mine, sizeof(mine), &rc);

    *from = 0;
    if (!all)
        return rc;
    while (*from < comm->size && all[*from].missing < 0)
        ++*from;
    if (*from < comm->size)
        snprintf(comm->stream->no_streams, sizeof(comm->stream->no_streams),
                 "rank %d's GPU does not reach rank %d's: %.*s", *from,
                 all[*from].missing, (int)sizeof(mine.why) - 1, all[*from].why);
    free(all);
    return COLL_OK;
}

/* ---- what this rank can ----------------------------------------------------------- */

/* Try waits and writes on two words that nothing uses. */
static int try_flags(void *ctx, void *stream)
{
    struct coll__stage *stage;
    int status = coll__stage_take(ctx, 0, &stage);
    void *flags[2];

    if (status)
        return status;
    atomic_store(coll__stage_word(stage, STAGE_BEGUN), 0);
    atomic_store(coll__stage_word(stage, STAGE_SPARE), 0);
    flags[0] = coll__stage_flag(stage, STAGE_BEGUN);
    flags[1] = coll__stage_flag(stage, STAGE_SPARE);
    status = coll__cuda_try_flags(stream, flags);
    atomic_store(coll__stage_word(stage, STAGE_BEGUN), 0);
    atomic_store(coll__stage_word(stage, STAGE_SPARE), 0);
    coll__stage_put(stage);
    return status;
}

/* Try what streams do, and load the kernels; in the device's context. */
static int try_streams(const struct coll__cuda_home *home, int32_t *can_copy)
{
    void *stream = NULL;
    int status = coll__cuda_stream_create(&stream);

    if (status == COLL_OK)
        status = try_flags(home->ctx, stream);
    *can_copy = status == COLL_OK;
    if (status == COLL_OK)
        status = coll__cuda_prepare(stream, NULL);
    coll__cuda_stream_destroy(stream);
    return status;
}

static int try_device(int32_t *can_copy)
{
    struct coll__cuda_home home;
    int was, status = coll__cuda_home_of(NULL, &home);

    if (status == COLL_OK)
        status = coll__cuda_go_in(&home, &was);
    if (status)
        return status;
    status = try_streams(&home, can_copy);
    coll__cuda_go_out(was);
    return status;
}

static struct offer offer_of(const struct coll__stream_tp *near)
{
    struct offer mine = {.n = near->n_slots, .len = near->slot};

    mine.status = try_device(&mine.can_copy);
    if (mine.status)
        snprintf(mine.why, sizeof(mine.why), "%s", coll_last_error());
    else if (mine.n < 1)
        mine.status = COLL_ERR_UNSUPPORTED;
    return mine;
}

/* ---- what all can ----------------------------------------------------------------- */

/* Return the most bytes of a slot, so that a rank that exchanges with all others pins no
 * more than PINNED_MOST, unless there are very many. */
static size_t slot_most(int size, int n_slots)
{
    size_t page = 4096, n = 2 * (size_t)n_slots * (size_t)size;

    return max_size(PINNED_MOST / n / page * page, SLOT_LEAST);
}

/* Take the least of all; returns the first rank that cannot, or -1. */
static int judge(const struct offer *all, int size, struct coll__proxy_env *env)
{
    for (int r = 0; r < size; r++) {
        if (all[r].status)
            return r;
        env->n_slots = r ? min_int(env->n_slots, all[r].n) : all[r].n;
        env->slot = r ? min_size(env->slot, all[r].len) : all[r].len;
    }
    env->slot = min_size(env->slot, slot_most(size, env->n_slots));
    return -1;
}

static int can_all_copy(const struct offer *all, int size)
{
    int r = 0;

    while (r < size && all[r].can_copy)
        r++;
    return r == size;
}

/* Collective; *unable: the first rank that cannot, or -1.  A status, logged. */
static int agree(struct coll_comm *comm, struct coll__proxy_env *env,
                 int *unable)
{
    struct offer mine = offer_of(env->inner);
    int rc;
    struct offer *all = coll__comm_exchange_new(comm, &mine, sizeof(mine), &rc);

    if (!all)
        return rc;
    *unable = judge(all, comm->size, env);
    if (*unable >= 0)
        snprintf(comm->stream->no_streams, sizeof(comm->stream->no_streams),
                 "the streams of rank %d cannot do their part: %.*s", *unable,
                 (int)sizeof(mine.why) - 1, all[*unable].why);
    comm->stream->is_plain = *unable >= 0 && can_all_copy(all, comm->size);
    free(all);
    return COLL_OK;
}

/* They are the same on all ranks, which have compared their tuning files. */
void coll__stream_choose_plain(struct coll_comm *comm)
{
    int n =
        (int)min_size(max_size(coll__limit(LIMIT_CUDA_SLOTS), 1), MOST_SLOTS);
    size_t slot = coll__limit(LIMIT_CUDA_SLOT) / SLOT_UNIT * SLOT_UNIT;
    size_t most = slot_most(comm->size, n);

    comm->stream->plain.n_slots = n;
    comm->stream->plain.slot = slot ? min_size(slot, most) : most;
}

static void do_without(struct coll_comm *comm)
{
    struct coll__stream_tp *near = comm->stream->near;

    log_info("comm", "GPU buffers %s: %s",
             comm->stream->is_plain ? "pass through the host"
                                    : "cannot be used",
             comm->stream->no_streams);
    comm->stream->near = NULL;
    near->ops->close(near, 1);
}

static int open_proxy(struct coll_comm *comm, struct coll__proxy_env *env,
                      struct coll__stream_tp **tp)
{
    env->rank = comm->rank;
    env->size = comm->size;
    env->to = comm->links.routes.to;
    env->channel = CHANNEL_STREAM;
    env->channel_aside = CHANNEL_P2P_STREAM;
    return coll__proxy_open(env, tp);
}

/* Open the transport of all streams, with what reaches ranks directly in it, and have the
 * ranks tell each other where their devices are. */
static int open_all(struct coll_comm *comm, struct coll__proxy_env *env)
{
    struct coll__stream_tp *tp;
    int rc = open_proxy(comm, env, &tp);

    if (rc)
        return rc;
    comm->stream->near = NULL;
    coll__programs_set(comm, tp);
    return coll__comm_gpus_meet(comm);
}

int coll__stream_join_plain(struct coll_comm *comm)
{
    struct coll__proxy_env env = {.n_slots = comm->stream->plain.n_slots,
                                  .slot = comm->stream->plain.slot,
                                  .has_no_kernels = 1};
    struct coll__stream_tp *tp;
    int rc = comm->stream->programs ? COLL_OK : coll__programs_open(comm);

    if (rc == COLL_OK)
        rc = open_proxy(comm, &env, &tp);
    if (rc == COLL_OK)
        coll__programs_set(comm, tp);
    return rc;
}

int coll__stream_join(struct coll_comm *comm)
{
    struct coll__tp_env env = coll__comm_env(comm);
    struct coll__proxy_env all = {.inner = NULL};
    int from = 0, rc = coll__stream_cuda_ipc.open(&env, NULL, &all.inner);

    if (rc)
        return rc;
    comm->stream->near = all.inner;
    rc = coll__programs_open(comm);
    if (rc == COLL_OK)
        rc = find_missing(comm, all.inner, &from);
    if (rc || from < comm->size)
        return rc;
    all.n_slots = all.inner->n_slots;
    all.slot = all.inner->slot;
    return open_all(comm, &all);
}

int coll__stream_join_far(struct coll_comm *comm)
{
    struct coll__proxy_env env = {.inner = comm->stream->near};
    int unable = -1, rc;

    if (!env.inner)
        return COLL_OK;
    rc = agree(comm, &env, &unable);
    if (rc == COLL_OK && unable >= 0) {
        do_without(comm);
        return COLL_OK;
    }
    return rc ? rc : open_all(comm, &env);
}
