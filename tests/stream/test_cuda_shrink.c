/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_shrink.c - streams and graphs of a communicator that has lost a rank, over
 * the fake CUDA driver: they go on, the rest of the ranks works in the same stream, and
 * nobody takes for a result what means nothing. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/comm/fail.h"

#include <signal.h>
#include <stdlib.h>

enum { COUNT = 3000 };

static int sum(const struct device_rank *r, int32_t *at)
{
    return coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, r->comm,
                          r->stream);
}

static CUgraphExec capture(const struct device_rank *r, int32_t *at)
{
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert_int_eq(sum(r, at), COLL_OK);
    OK(cu.StreamEndCapture(r->stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphDestroy(graph));
    return exec;
}

/* Sum 1, 2, ... of all ranks, and launch the old graph before and after: what it writes
 * means nothing, but it ends, and the sum is right. */
static int works(const struct device_rank *r, int size, CUgraphExec old)
{
    int32_t *at = device_numbers(1, COUNT);
    int rc;

    OK(cu.GraphLaunch(old, r->stream));
    rc = sum(r, at);
    OK(cu.GraphLaunch(old, r->stream));
    OK(cu.StreamSynchronize(r->stream));
    return !rc && device_holds(at, size, size, COUNT);
}

/* The last rank dies, when the others' streams wait for it in a call and in a graph. */
static int lose_one(struct world_rank *me)
{
    struct device_rank r;
    struct coll_comm *rest;
    CUgraphExec exec;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = device_numbers(0, COUNT);
    WORLD_CHECK(me, !sum(&r, at));
    OK(cu.StreamSynchronize(r.stream));
    exec = capture(&r, at);
    OK(cu.GraphLaunch(exec, r.stream));
    WORLD_CHECK(me, !sum(&r, at));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    if (me->rank == me->size - 1)
        raise(SIGKILL);
    sum(&r, at); /* it may have been told of the death already */
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, world_await_failure(r.comm, patient(20)) == COLL_ERR_PEER);
    WORLD_CHECK(me, !coll_comm_shrink(r.comm, NULL, 0, 0, &rest));
    coll_comm_destroy(r.comm);
    r.comm = rest;
    for (int i = 0; i < 3; i++)
        WORLD_CHECK(me, works(&r, me->size - 1, exec));
    OK(cu.GraphExecDestroy(exec));
    WORLD_CHECK(me, !device_leave(&r));
    return 0;
}

/* _i: the engine, and the ranks */
START_TEST(the_rest_works_in_the_same_stream)
{
    setenv("FAKE_CUDA_IPC", "1", 1);
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("COLL_CUDA_ENGINE", _i % 2 ? "kernel" : "stream", 1);
    ck_assert_int_eq(device_fork(2 + _i / 2, lose_one, NULL), 1);
}
END_TEST

START_TEST(the_rest_works_over_the_host)
{
    setenv("FAKE_CUDA_IPC", "0", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(device_fork(3, lose_one, NULL), 1);
}
END_TEST

/* ---- who has not heard of it ------------------------------------------------ */

enum asking { BY_ERROR, BY_TEST, BY_WAIT, BY_DESTROY, N_ASKING };

/* The last rank's numbers, by the ranks 0, 1, ... in turn. */
static struct coll_args broadcast(const struct device_rank *r, int32_t *at)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_BROADCAST,
                              .in = at,
                              .out = at,
                              .count = COUNT,
                              .type = COLL_I32,
                              .root = r->me->size - 1,
                              .stream = r->stream};
}

static int test(struct coll_request *request)
{
    int rc;

    while ((rc = coll_test(request)) == COLL_IN_PROGRESS)
        ;
    return rc;
}

/* What a rank is told of a broadcast that its stream has passed. */
static int ask(struct device_rank *r, enum asking how,
               struct coll_request *request)
{
    if (how == BY_ERROR)
        return coll_comm_async_error(r->comm);
    return how == BY_TEST ? test(request) : coll_wait(request, 0);
}

/* Rank 0 alone hears of the death of the last rank, which has not called.  So its stream
 * passes to rank 1 what was in a slot. */
static int hear(struct device_rank *r, enum asking how)
{
    int32_t *at = device_numbers(r->me->rank, COUNT);
    struct coll_args args = broadcast(r, at);
    struct coll_request *request;
    int is_last = r->me->rank == r->me->size - 1;

    WORLD_CHECK(r->me, !coll_request_create(&args, r->comm, &request));
    WORLD_CHECK(r->me, is_last || !coll_start(request));
    world_meet(r->me);
    if (r->me->rank == 0)
        coll__comm_set_failure(r->comm, COLL_ERR_PEER, "the last rank died");
    OK(cu.StreamSynchronize(r->stream));
    if (r->me->rank == 1 && how != BY_DESTROY)
        EXPECT(r->me, ask(r, how, request), COLL_ERR_PEER,
               "another rank has failed");
    coll_request_destroy(request);
    world_meet(r->me);
    return 0;
}

static int hear_late(struct world_rank *me)
{
    enum asking how = *(enum asking *)me->arg;
    struct device_rank r;
    int rc;

    WORLD_CHECK(me, !device_join(&r, me));
    if (hear(&r, how))
        return 1;
    if (me->rank == me->size - 1)
        WORLD_CHECK(me,
                    world_await_failure(r.comm, patient(20)) == COLL_ERR_PEER);
    rc = coll_comm_destroy(r.comm);
    WORLD_CHECK(me, me->rank != 1 || how != BY_DESTROY || rc == COLL_ERR_PEER);
    OK(cu.StreamDestroy(r.stream));
    return 0;
}

/* _i: the engine, and who tells */
START_TEST(what_means_nothing_is_no_result)
{
    enum asking how = (enum asking)(_i / 2);

    setenv("FAKE_CUDA_IPC", "1", 1);
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("COLL_CUDA_ENGINE", _i % 2 ? "kernel" : "stream", 1);
    setenv("COLL_ALGO", "broadcast:chain", 1);
    ck_assert_int_eq(device_fork(3, hear_late, &how), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_shrink");
    TCase *cases = suite_case(suite, "cuda_shrink", 60);

    tcase_add_loop_test(cases, the_rest_works_in_the_same_stream, 0, 6);
    tcase_add_loop_test(cases, the_rest_works_over_the_host, 0, 2);
    tcase_add_loop_test(cases, what_means_nothing_is_no_result, 0,
                        2 * N_ASKING);
    return suite_run(suite);
}
