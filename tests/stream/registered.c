/* SPDX-License-Identifier: BSD-3-Clause */
/* registered.c - calls on registered buffers, whose bytes are counted. */
#include "tests/stream/registered.h"
#include "tests/fake_cuda/counts.h"

#include <signal.h>
#include <stdlib.h>

int registered_count = 3000;

const enum coll_collective registered_kinds[REGISTERED_KINDS] = {
    COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLTOALL,
    COLL_BROADCAST};

struct coll_args registered_args(const struct registered *k,
                                 enum coll_collective collective, size_t count,
                                 char *in, char *out)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = collective,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .stream = k->r.stream};
}

struct registered *registered_new(void)
{
    return calloc(1, sizeof(struct registered) + (size_t)REGISTERED_MOST);
}

int registered_join(struct registered *k, struct world_rank *me)
{
    if (device_join(&k->r, me))
        return 1;
    k->in = (char *)fake_memory(REGISTERED_MOST + 1024);
    k->out = (char *)fake_memory(REGISTERED_MOST + 1024);
    k->in_2 = (char *)fake_memory(REGISTERED_MOST + 1024);
    k->out_2 = (char *)fake_memory(REGISTERED_MOST + 1024);
    return 0;
}

int registered_enroll(const struct registered *k)
{
    int rc = coll_mem_register(k->r.comm, k->in, REGISTERED_MOST + 512);

    return rc ? rc
              : coll_mem_register(k->r.comm, k->out, REGISTERED_MOST + 512);
}

int registered_dismiss(const struct registered *k)
{
    int rc = coll_mem_deregister(k->r.comm, k->out);

    return rc ? rc : coll_mem_deregister(k->r.comm, k->in);
}

int registered_leave(struct registered *k)
{
    int rc = device_leave(&k->r);

    OK(cu.MemFree((CUdeviceptr)k->in));
    OK(cu.MemFree((CUdeviceptr)k->out));
    OK(cu.MemFree((CUdeviceptr)k->in_2));
    OK(cu.MemFree((CUdeviceptr)k->out_2));
    return rc;
}

int32_t registered_value(int rank, int round, int i)
{
    return 1000 * round + 7 * rank + i;
}

void registered_fill(struct registered *k, char *at, int round)
{
    for (int i = 0; i < REGISTERED_MOST / 4; i++)
        k->host[i] = registered_value(k->r.me->rank, round, i);
    fake_put((CUdeviceptr)at, k->host, REGISTERED_MOST);
}

/* Element i of a result of registered_count elements, or as many of each rank. */
static int32_t wanted(enum coll_collective c, const struct world_rank *me,
                      int round, int i)
{
    int from = i / registered_count, sum = 0, at = i;

    switch (c) {
    case COLL_ALLGATHER:
        return registered_value(from, round, i % registered_count);
    case COLL_ALLTOALL:
        return registered_value(
            from, round, me->rank * registered_count + i % registered_count);
    case COLL_BROADCAST:
        return registered_value(0, round, i);
    case COLL_REDUCE_SCATTER:
        at = me->rank * registered_count + i;
        break;
    default:
        break;
    }
    for (int r = 0; r < me->size; r++)
        sum += registered_value(r, round, at);
    return sum;
}

int registered_is_right(struct registered *k, enum coll_collective c,
                        const char *out, int round)
{
    int is_all = c == COLL_ALLGATHER || c == COLL_ALLTOALL;
    int n = is_all ? registered_count * k->r.me->size : registered_count;

    OK(cu.StreamSynchronize(k->r.stream));
    OK(cu.MemcpyDtoH(k->host, (CUdeviceptr)out, REGISTERED_MOST));
    for (int i = 0; i < n; i++)
        if (k->host[i] != wanted(c, k->r.me, round, i))
            return 0;
    return 1;
}

int registered_replay(struct registered *k, int n)
{
    struct coll_args sum =
        registered_args(k, COLL_ALLREDUCE, registered_count, k->in, k->in);
    struct coll_args gather =
        registered_args(k, COLL_ALLTOALL, registered_count, k->in, k->out);
    struct world_rank *me = k->r.me;
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamBeginCapture(k->r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !device_do(&gather, k->r.comm));
    WORLD_CHECK(me, !device_do(&sum, k->r.comm));
    OK(cu.StreamEndCapture(k->r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < n; round++) {
        registered_fill(k, k->in, round);
        OK(cu.GraphLaunch(exec, k->r.stream));
        WORLD_CHECK(me, registered_is_right(k, COLL_ALLREDUCE, k->in, round));
        WORLD_CHECK(me, registered_is_right(k, COLL_ALLTOALL, k->out, round));
    }
    OK(cu.GraphExecDestroy(exec));
    return 0;
}

uint64_t registered_copied(void)
{
    void (*ask)(struct fake_counts *) =
        (__typeof__(ask))gpu_symbol("fake_cuda_counts");
    struct fake_counts counts;

    ask(&counts);
    return counts.copied + counts.kernel_len + counts.plan_len;
}

int registered_call(struct registered *k, enum coll_collective c, char *in,
                    char *out, int round, uint64_t *moved)
{
    struct coll_args args = registered_args(k, c, registered_count, in, out);
    uint64_t before;

    registered_fill(k, in, round);
    OK(cu.MemsetD8Async((CUdeviceptr)out, 0xa5, REGISTERED_MOST, k->r.stream));
    OK(cu.StreamSynchronize(k->r.stream));
    world_meet(k->r.me);
    before = registered_copied();
    WORLD_CHECK(k->r.me, !device_do(&args, k->r.comm));
    OK(cu.StreamSynchronize(k->r.stream));
    *moved = registered_copied() - before;
    WORLD_CHECK(k->r.me, registered_is_right(k, c, out, round));
    return 0;
}

int registered_fall_out(struct world_rank *me)
{
    int is_last = me->rank == me->size - 1, is_killed = me->arg != NULL;
    struct registered *k = registered_new();
    struct coll_args args;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    args = registered_args(k, COLL_ALLTOALL, registered_count, k->in, k->out);
    for (int i = 0; i < 3 + !is_last; i++)
        WORLD_CHECK(me, !device_do(&args, k->r.comm));
    if (is_last)
        OK(cu.StreamSynchronize(k->r.stream));
    world_meet(me);
    if (is_last && is_killed)
        raise(SIGKILL);
    if (is_last)
        coll_comm_abort(k->r.comm, "enough");
    OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me, world_await_failure(k->r.comm, patient(20)) ==
                        (is_killed ? COLL_ERR_PEER : COLL_ERR_ABORTED));
    coll_comm_destroy(k->r.comm);
    OK(cu.MemFree((CUdeviceptr)k->in));
    free(k);
    return 0;
}
