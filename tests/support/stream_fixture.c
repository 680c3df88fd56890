/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.c - ranks with a stream each over the fake CUDA driver. */
#include "tests/support/stream_fixture.h"
#include "tests/support/patience.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int stream_kernel_blocks;

static int gather(void *arg, const void *in, size_t len, void *out)
{
    const struct world_rank *me = arg;

    return me->oob.allgather(me->oob.arg, in, out, len);
}

static int open_tp(struct stream_rank *rank)
{
    struct world_rank me = *rank->me;
    struct coll__peer mine = {
        .pid = getpid(), .local_rank = me.rank, .local_size = me.size};
    struct coll__peer *peers = calloc((size_t)me.size, sizeof(*peers));
    struct coll__tp_env env = {.rank = me.rank,
                               .size = me.size,
                               .peers = peers,
                               .allgather = gather,
                               .arg = &me,
                               .timeout = 60};
    int rc = gather(&me, &mine, sizeof(mine), peers);

    if (rc == COLL_OK)
        rc = coll__stream_cuda_ipc.open(&env, NULL, &rank->tp);
    rank->is_open = rc == COLL_OK;
    free(peers);
    return rc;
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
        rank.tp->ops->close(rank.tp, 1);
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
