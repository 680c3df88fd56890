/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_shrink.c - streams and graphs of a communicator that has lost a rank, over
 * the fake CUDA driver: they go on, and the rest of the ranks works in the same stream. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"

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

int main(void)
{
    Suite *suite = suite_create("cuda_shrink");
    TCase *cases = suite_case(suite, "cuda_shrink", 60);

    tcase_add_loop_test(cases, the_rest_works_in_the_same_stream, 0, 6);
    tcase_add_loop_test(cases, the_rest_works_over_the_host, 0, 2);
    return suite_run(suite);
}
