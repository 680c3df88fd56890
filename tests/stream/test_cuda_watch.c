/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_watch.c - streams that wait for other ranks' by themselves, over the fake
 * CUDA driver: who does not come is named, and the streams go on, though no host calls
 * the library any more. */
#include "lib/comm/comm.h"
#include "tests/support/side_by_side.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 100, MOST = 8 * COUNT * 8 };

static char *begin(struct device_rank *r, struct world_rank *me)
{
    return device_join(r, me) ? NULL : (char *)fake_memory(MOST);
}

/* The same with a short deadline from then on: joining takes what it takes, on a machine
 * that is busy. */
static char *begin_soon(struct device_rank *r, struct world_rank *me)
{
    char *at = begin(r, me);

    if (at)
        world_hurry(r->comm, 1);
    return at;
}

static int sum(const struct device_rank *r, char *at)
{
    return coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, r->comm,
                          r->stream);
}

static int is_last(const struct world_rank *me)
{
    return me->rank == me->size - 1;
}

/* All but the last rank call, twice, and wait for their streams alone. */
static int never_comes(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);

    WORLD_CHECK(me, at && !sum(&r, at));
    OK(cu.StreamSynchronize(r.stream));
    world_hurry(r.comm, 1);
    world_meet(me);
    if (!is_last(me)) {
        sum(&r, at);
        sum(&r, at);
        OK(cu.StreamSynchronize(r.stream));
    }
    EXPECT(me, world_await_failure(r.comm, patient(20)), COLL_ERR_TIMEOUT,
           "allreduce #2 (100 i32, sum) on a stream did not end within");
    WORLD_CHECK(me, strstr(coll_last_error(), "not arrived: rank "));
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "is after allreduce #1 (100 i32, sum) on a stream"));
    coll_comm_destroy(r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(a_rank_that_never_calls_is_named)
{
    patient_timeout(20);
    ck_assert_int_eq(world_fork(_i, never_comes, NULL, patient(60)), 0);
}
END_TEST

START_TEST(ranks_that_are_threads_are_watched_as_well)
{
    patient_timeout(20);
    ck_assert_int_eq(world_threads(3, never_comes, NULL, patient(60)), 0);
}
END_TEST

/* One that has left is not waited for until the deadline. */
static int leaves(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);

    WORLD_CHECK(me, at && !sum(&r, at));
    if (!is_last(me)) {
        sum(&r, at); /* it fails where another one has heard before */
        OK(cu.StreamSynchronize(r.stream));
        EXPECT(me, world_await_failure(r.comm, patient(20)), COLL_ERR_MISMATCH,
               "called coll_comm_destroy where rank");
        WORLD_CHECK(me, strstr(coll_last_error(),
                               "called allreduce #2 (100 i32, sum) on a"));
    }
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(a_rank_that_has_left_is_told_soon)
{
    patient_timeout(60);
    ck_assert_int_eq(world_fork(3, leaves, NULL, patient(50)), 0);
}
END_TEST

/* Another number of elements: where nobody waits for what never comes, the end
 * finds it. */
static int calls_another(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);
    int rc;

    WORLD_CHECK(me, at);
    rc = coll_allgather(at, at + MOST / 2, COUNT - (size_t)is_last(me), COLL_I8,
                        r.comm, r.stream);
    WORLD_CHECK(me, !rc);
    OK(cu.StreamSynchronize(r.stream));
    EXPECT(me, coll_comm_destroy(r.comm), COLL_ERR_MISMATCH,
           "so results may be wrong");
    return 0;
}

START_TEST(the_end_finds_calls_that_were_not_alike)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(2, calls_another, NULL, patient(50)), 0);
}
END_TEST

/* The streams stand, all ranks have called. */
static int is_at_other_work(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);
    _Atomic uint32_t *gate;

    WORLD_CHECK(me, at);
    gate = fake_words(1);
    fake_hold(r.stream, gate);
    WORLD_CHECK(me, !sum(&r, at));
    world_meet(me);
    world_hurry(r.comm, 1);
    EXPECT(me, world_await_failure(r.comm, patient(20)), COLL_ERR_TIMEOUT,
           "raise COLL_TIMEOUT if a stream may be at other work");
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(r.stream));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(streams_at_other_work_have_the_same_deadline)
{
    patient_timeout(20);
    ck_assert_int_eq(world_fork(2, is_at_other_work, NULL, patient(60)), 0);
}
END_TEST

/* One operation after the other comes late, all of them much too late. */
static int moves(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);

    WORLD_CHECK(me, at);
    for (int i = 0; i < 6; i++) {
        if (is_last(me))
            usleep((useconds_t)(patient(0.25) * 1e6));
        WORLD_CHECK(me, !sum(&r, at));
    }
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

START_TEST(what_moves_has_time)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(3, moves, NULL, patient(60)), 0);
}
END_TEST

/* Captured by all, launched by all once, and then by all but the last rank. */
static int launches(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);
    CUgraphExec exec;
    CUgraph graph;

    WORLD_CHECK(me, at);
    OK(cu.StreamBeginCapture(r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !sum(&r, at));
    OK(cu.StreamEndCapture(r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_hurry(r.comm, 1);
    world_meet(me);
    if (!is_last(me)) {
        OK(cu.GraphLaunch(exec, r.stream));
        OK(cu.StreamSynchronize(r.stream));
    }
    EXPECT(me, world_await_failure(r.comm, patient(20)), COLL_ERR_TIMEOUT,
           "a graph that rank ");
    WORLD_CHECK(me, strstr(coll_last_error(), " has not received its message"));
    OK(cu.GraphExecDestroy(exec));
    coll_comm_destroy(r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(a_graph_that_is_not_launched_everywhere_is_told)
{
    patient_timeout(20);
    ck_assert_int_eq(world_fork(_i, launches, NULL, patient(60)), 0);
}
END_TEST

/* A rank that has sent all that is asked of it may go on before another one calls. */
static int comes_late(struct world_rank *me)
{
    struct device_rank r;
    char *at = begin(&r, me);

    WORLD_CHECK(me, at);
    if (is_last(me))
        usleep((useconds_t)(patient(1.5) * 1e6));
    WORLD_CHECK(me,
                !coll_broadcast(at, at, COUNT, COLL_I32, 0, r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    return device_leave(&r);
}

START_TEST(who_is_through_waits_for_nobody)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, comes_late, NULL, patient(60)), 0);
}
END_TEST

/* By the wait for a request, or the communicator's end. */
static int waits(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_BROADCAST,
                             .type = COLL_F32,
                             .count = COUNT,
                             .root = 1};
    struct coll_request *request;
    struct device_rank r;
    char *at = begin_soon(&r, me);
    int rc;

    WORLD_CHECK(me, at);
    args.in = args.out = at;
    args.stream = r.stream;
    if (me->rank) {
        WORLD_CHECK(me, world_await_failure(r.comm, patient(20)) ==
                            COLL_ERR_TIMEOUT);
    } else {
        WORLD_CHECK(me, !coll_request_create(&args, r.comm, &request) &&
                            !coll_start(request));
        rc = me->arg ? coll_wait(request, 0) : coll_comm_destroy(r.comm);
        EXPECT(me, rc, COLL_ERR_TIMEOUT, "not arrived: rank 1");
    }
    if (me->rank || me->arg)
        coll_comm_destroy(r.comm);
    return 0;
}

/* _i: which */
START_TEST(who_waits_is_told_who_is_missing)
{
    patient_timeout(20);
    ck_assert_int_eq(world_fork(2, waits, _i ? "" : NULL, patient(60)), 0);
}
END_TEST

/* While its stream stands the host asks for nothing else. */
static int device_fails(struct world_rank *me)
{
    struct device_rank r;
    char *at;

    if (!me->rank)
        setenv("FAKE_CUDA_FAULT", "cuEventQuery:3+:700", 1);
    at = begin(&r, me);
    WORLD_CHECK(me, at);
    if (!me->rank) {
        fake_hold(r.stream, fake_words(1));
        sum(&r, at);
    }
    EXPECT(me, world_await_failure(r.comm, patient(10)), COLL_ERR_SYSTEM,
           "illegal memory access");
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_device_that_fails_is_noticed)
{
    patient_timeout(60);
    ck_assert_int_eq(world_fork(2, device_fails, NULL, patient(50)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_watch");
    TCase *tc = tcase_create("cuda_watch");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_rank_that_never_calls_is_named, 2, 5);
    tcase_add_test(tc, ranks_that_are_threads_are_watched_as_well);
    tcase_add_test(tc, a_rank_that_has_left_is_told_soon);
    tcase_add_test(tc, the_end_finds_calls_that_were_not_alike);
    tcase_add_test(tc, streams_at_other_work_have_the_same_deadline);
    tcase_add_test(tc, what_moves_has_time);
    tcase_add_test(tc, who_is_through_waits_for_nobody);
    tcase_add_loop_test(tc, a_graph_that_is_not_launched_everywhere_is_told, 2,
                        5);
    tcase_add_loop_test(tc, who_waits_is_told_who_is_missing, 0, 2);
    tcase_add_test(tc, a_device_that_fails_is_noticed);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
