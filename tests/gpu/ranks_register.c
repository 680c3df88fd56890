/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_register.c - collectives on registered buffers, which the other ranks read in
 * place: what is read too early or too late shows, since each round has other numbers. */
#include "tests/gpu/ranks.h"

#include <stdlib.h>

#define COUNT ((size_t)300000) /* of each rank; several slots */

struct buffers {
    struct gpu_rank g;
    CUdeviceptr in, out;
    uint32_t *host;
    size_t len; /* bytes of each */
};

static uint32_t value(int rank, uint32_t round, size_t i)
{
    return (uint32_t)rank * 77 + round * 1001 + (uint32_t)i;
}

/* What one of the results has at i. */
static uint32_t wanted(const struct world_rank *me, enum coll_collective c,
                       uint32_t round, size_t i)
{
    uint32_t sum = 0;

    if (c == COLL_ALLGATHER)
        return value((int)(i / COUNT), round, i % COUNT);
    if (c == COLL_ALLTOALL)
        return value((int)(i / COUNT), round,
                     (size_t)me->rank * COUNT + i % COUNT);
    for (int r = 0; r < me->size; r++)
        sum += value(r, round,
                     c == COLL_ALLREDUCE ? i : (size_t)me->rank * COUNT + i);
    return sum;
}

static int call(const struct buffers *b, enum coll_collective c)
{
    void *in = (void *)(uintptr_t)b->in, *out = (void *)(uintptr_t)b->out;
    struct coll_comm *comm = b->g.comm;
    CUstream stream = b->g.streams[0];

    switch (c) {
    case COLL_ALLGATHER:
        return coll_allgather(in, out, COUNT, COLL_U32, comm, stream);
    case COLL_ALLTOALL:
        return coll_alltoall(in, out, COUNT, COLL_U32, comm, stream);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(in, out, COUNT, COLL_U32, COLL_SUM, comm,
                                   stream);
    default:
        return coll_allreduce(in, out, COUNT * (size_t)b->g.me->size, COLL_U32,
                              COLL_SUM, comm, stream);
    }
}

static int try_call(struct buffers *b, enum coll_collective c, uint32_t round)
{
    struct world_rank *me = b->g.me;
    size_t n = b->len / sizeof(uint32_t);
    size_t n_out = c == COLL_REDUCE_SCATTER ? COUNT : n;

    for (size_t i = 0; i < n; i++)
        b->host[i] = value(me->rank, round, i);
    MUST(MemcpyHtoDAsync(b->in, b->host, b->len, b->g.streams[0]));
    WORLD_CHECK(me, !call(b, c));
    /* at once: what the others have not read by now would be wrong */
    MUST(MemsetD8Async(b->in, 0xee, b->len, b->g.streams[0]));
    MUST(MemcpyDtoHAsync(b->host, b->out, n_out * sizeof(uint32_t),
                         b->g.streams[0]));
    MUST(StreamSynchronize(b->g.streams[0]));
    for (size_t i = 0; i < n_out; i++)
        WORLD_CHECK(me, b->host[i] == wanted(me, c, round, i));
    if (!me->rank)
        atomic_fetch_add(&b->g.run->shared->n_done, 1);
    return 0;
}

int gpu_rank_register(struct world_rank *me)
{
    static const enum coll_collective kinds[] = {
        COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLTOALL};
    struct buffers b = {.len = COUNT * (size_t)me->size * sizeof(uint32_t)};

    if (gpu_rank_begin(&b.g, me))
        return 1;
    MUST(MemAlloc(&b.in, b.len));
    MUST(MemAlloc(&b.out, b.len));
    MUST(MemHostAlloc((void **)&b.host, b.len, 0));
    WORLD_CHECK(me,
                !coll_mem_register(b.g.comm, (void *)(uintptr_t)b.in, b.len));
    WORLD_CHECK(me,
                !coll_mem_register(b.g.comm, (void *)(uintptr_t)b.out, b.len));
    for (uint32_t round = 0; round < 20; round++)
        if (try_call(&b, kinds[round % 4], round))
            return 1;
    WORLD_CHECK(me, !coll_mem_deregister(b.g.comm, (void *)(uintptr_t)b.in));
    WORLD_CHECK(me, !coll_mem_deregister(b.g.comm, (void *)(uintptr_t)b.out));
    world_meet(me);
    MUST(MemFree(b.in));
    MUST(MemFree(b.out));
    MUST(MemFreeHost(b.host));
    return gpu_rank_end(&b.g);
}
