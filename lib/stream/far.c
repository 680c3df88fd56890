/* SPDX-License-Identifier: BSD-3-Clause */
/* far.c - joins devices that do not all reach each other: the host carries what is between
 * these (transports/proxy.h), if every rank's streams can do their part. */
#include "lib/comm/comm.h"
#include "lib/comm/links.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_stage.h"
#include "lib/stream/calls.h"
#include "lib/stream/gpu_view.h"
#include "lib/stream/programs.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/proxy.h"

#include <stdio.h>
#include <stdlib.h>

#define PINNED_MOST ((size_t)64 << 20) /* bytes */
#define SLOT_LEAST ((size_t)64 << 10)  /* bytes */

/* What each rank says. */
struct offer {
    int32_t status; /* can its streams do their part? */
    int32_t n;      /* slots between two ranks, */
    uint64_t len;   /* of so many bytes, as ranks of its host share them */
    char why[160];
};

/* ---- what this rank can ----------------------------------------------------------- */

/* Try waits and writes on two words that nothing uses. */
static int try_flags(void *ctx, void *stream)
{
    struct coll__stage *stage;
    int status = coll__stage_take(ctx, 0, &stage);
    void *flags[2];

    if (status)
        return status;
    for (int w = 0; w < N_STAGE_WORDS; w++)
        atomic_store(coll__stage_word(stage, (enum coll__stage_word)w), 0);
    flags[0] = coll__stage_flag(stage, STAGE_READY);
    flags[1] = coll__stage_flag(stage, STAGE_DONE);
    status = coll__cuda_try_flags(stream, flags);
    for (int w = 0; w < N_STAGE_WORDS; w++)
        atomic_store(coll__stage_word(stage, (enum coll__stage_word)w), 0);
    coll__stage_put(stage);
    return status;
}

/* Load the kernels, and try what streams do; in the device's context. */
static int try_streams(const struct coll__cuda_home *home)
{
    void *stream = NULL;
    int status = coll__cuda_stream_create(&stream);

    if (status == COLL_OK)
        status = coll__cuda_prepare(stream);
    if (status == COLL_OK)
        status = try_flags(home->ctx, stream);
    coll__cuda_stream_destroy(stream);
    return status;
}

static int try_device(void)
{
    struct coll__cuda_home home;
    int was, status = coll__cuda_home_of(NULL, &home);

    if (status == COLL_OK)
        status = coll__cuda_go_in(&home, &was);
    if (status)
        return status;
    status = try_streams(&home);
    coll__cuda_go_out(was);
    return status;
}

static struct offer offer_of(const struct coll__stream_tp *near)
{
    struct offer mine = {.n = near->n_slots, .len = near->slot};

    mine.status = try_device();
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
    free(all);
    return COLL_OK;
}

static void do_without(struct coll_comm *comm)
{
    struct coll__stream_tp *near = comm->stream->near;

    log_info("comm", "GPU buffers pass through the host: %s",
             comm->stream->no_streams);
    comm->stream->near = NULL;
    near->ops->close(near, 1);
}

int coll__stream_join_far(struct coll_comm *comm)
{
    struct coll__proxy_env env = {.rank = comm->rank,
                                  .size = comm->size,
                                  .inner = comm->stream->near,
                                  .to = comm->links.routes.to,
                                  .channel = CHANNEL_STREAM,
                                  .channel_aside = CHANNEL_P2P_STREAM};
    struct coll__stream_tp *tp;
    int unable = -1, rc;

    if (!env.inner)
        return COLL_OK;
    rc = agree(comm, &env, &unable);
    if (rc == COLL_OK && unable >= 0) {
        do_without(comm);
        return COLL_OK;
    }
    if (rc == COLL_OK)
        rc = coll__proxy_open(&env, &tp);
    if (rc)
        return rc;
    comm->stream->near = NULL;
    coll__queued_set(comm, tp);
    return coll__comm_gpus_meet(comm);
}
