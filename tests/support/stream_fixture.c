/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.c - ranks with a stream each over the fake CUDA driver. */
#include "tests/support/stream_fixture.h"
#include "tests/support/patience.h"
#include "lib/device/cuda_stream.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int stream_kernel_blocks;

int stream_gather(void *arg, const void *in, size_t len, void *out)
{
    const struct stream_rank *rank = arg;

    return rank->me->oob.allgather(rank->me->oob.arg, in, out, len);
}

int stream_takes(const struct stream_rank *rank, void *stream)
{
    struct coll__cuda_place place;
    int rc = coll__cuda_enter(stream, NULL, &place);

    if (rc)
        return rc;
    coll__cuda_leave();
    return rank->tp->ops->takes(rank->tp, stream, &place);
}

static int host_of(const struct stream_rank *rank, int r, int are_on_one)
{
    return rank->scene->hosts && !are_on_one ? rank->scene->hosts[r] : 0;
}

int stream_peers(const struct stream_rank *rank, int are_on_one,
                 struct coll__peer *peers)
{
    int me = rank->me->rank;
    struct coll__peer mine = {.pid = getpid(),
                              .host = host_of(rank, me, are_on_one)};

    for (int r = 0; r < rank->me->size; r++) {
        int is_here = host_of(rank, r, are_on_one) == mine.host;

        mine.local_size += is_here;
        mine.local_rank += is_here && r < me;
    }
    return stream_gather((void *)rank, &mine, sizeof(mine), peers);
}

static int open_tp(struct stream_rank *rank)
{
    const struct world_rank *me = rank->me;
    struct coll__peer *peers = calloc((size_t)me->size, sizeof(*peers));
    struct coll__tp_env env = {.rank = me->rank,
                               .size = me->size,
                               .peers = peers,
                               .allgather = stream_gather,
                               .arg = rank,
                               .timeout = 60};
    int rc = stream_peers(rank, 0, peers);

    if (rc == COLL_OK)
        rc = coll__stream_cuda_ipc.open(&env, NULL, &rank->tp);
    if (rc == COLL_OK && rank->scene->hosts)
        rc = stream_hosts_open(rank);
    rank->is_open = rc == COLL_OK;
    free(peers);
    return rc;
}

void stream_close(struct stream_rank *rank, int is_orderly)
{
    rank->is_open = 0;
    if (rank->hosts)
        stream_hosts_close(rank, is_orderly);
    else
        rank->tp->ops->close(rank->tp, is_orderly);
}

/* The driver is started here by each process, by whoever starts threads before. */
static int run_rank(struct world_rank *me)
{
    struct stream_rank rank = {.me = me, .scene = me->arg};
    struct world_rank inner = *me;
    int rc;

    if (rank.scene->are_processes) {
        if (rank.scene->fault && me->rank == 0)
            setenv("FAKE_CUDA_FAULT", rank.scene->fault, 1);
        fake_start();
    }
    rank.ctx = fake_device(me->rank % rank.scene->n_devices);
    rank.s = fake_stream();
    WORLD_CHECK(me, open_tp(&rank) == COLL_OK);
    inner.arg = &rank;
    rc = rank.scene->body(&inner);
    if (rank.is_open) {
        OK(cu.StreamSynchronize(rank.s));
        world_meet(me);
        stream_close(&rank, 1);
    }
    return rc;
}

int stream_run(const struct stream_scene *scene)
{
    char text[32];
    struct stream_scene copy = *scene;

    snprintf(text, sizeof(text), "%d", scene->n_devices);
    setenv("FAKE_CUDA_DEVICES", text, 1);
    snprintf(text, sizeof(text), "%u", scene->seed);
    setenv("FAKE_CUDA_SEED", text, 1);
    coll__limit_assume(LIMIT_CUDA_SLOTS, (size_t)scene->n_slots);
    coll__limit_assume(LIMIT_CUDA_SLOT, scene->slot);
    /* the fake driver's processes run at once, as with MPS */
    if (stream_kernel_blocks) {
        coll__limit_assume(LIMIT_CUDA_KERNEL_BLOCKS,
                           (size_t)stream_kernel_blocks);
        setenv("COLL_CUDA_ENGINE", "kernel", 1);
        setenv("FAKE_CUDA_ATTRIBUTES", "133=1", 1);
    }
    if (scene->are_processes)
        return world_fork(scene->size, run_rank, &copy, 50);
    fake_start();
    return world_threads(scene->size, run_rank, &copy, 50);
}
