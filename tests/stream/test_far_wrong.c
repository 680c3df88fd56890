/* SPDX-License-Identifier: BSD-3-Clause */
/* test_far_wrong.c - GPU buffers of several hosts: what is told of calls that differ, ranks
 * that do not come, and hosts that die. */
#include "tests/fake_cuda/counts.h"
#include "tests/stream/far.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Once all ranks have called what they are to call: have the waits of the communicator end
 * soon. */
static void hurry(const struct device_rank *r)
{
    world_meet(r->me);
    world_hurry(r->comm, patient(0.5));
}

/* Rank 2 calls something else: all are told, at the call where that is checked. */
static int differ(struct world_rank *me)
{
    int is_checked = getenv("COLL_CHECK") != NULL, rc;
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    rc = far_call(&r, at, me->rank == 2);
    WORLD_CHECK(me, !is_checked || rc == COLL_ERR_MISMATCH);
    rc = world_await_failure(r.comm, patient(40));
    EXPECT(me, rc, COLL_ERR_MISMATCH, "the ranks disagree");
    OK(cu.StreamSynchronize(r.stream));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(calls_that_differ_are_told_of)
{
    if (_i)
        setenv("COLL_CHECK", "1", 1);
    ck_assert_int_eq(far_fork(4, 2, differ), 0);
}
END_TEST

/* A rank does not come: after the timeout all know which, also where they wait for others
 * that wait for it. */
static int wait_for_one(struct world_rank *me)
{
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    if (me->rank != 3)
        WORLD_CHECK(me, !far_call(&r, at, 0));
    hurry(&r);
    EXPECT(me, world_await_failure(r.comm, patient(40)), COLL_ERR_TIMEOUT,
           "not arrived: rank 3");
    OK(cu.StreamSynchronize(r.stream));
    EXPECT(me, far_call(&r, at, 0), COLL_ERR_TIMEOUT, "not arrived: rank 3");
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_rank_that_does_not_come_is_told_of)
{
    ck_assert_int_eq(far_fork(4, 2, wait_for_one), 0);
}
END_TEST

/* A broadcast's root does not come: those of the other host wait for one that waits for
 * it, and blame nobody. */
static int wait_for_root(struct world_rank *me)
{
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    if (me->rank)
        WORLD_CHECK(me, !far_call(&r, at, 1));
    hurry(&r);
    EXPECT(me, world_await_failure(r.comm, patient(40)), COLL_ERR_TIMEOUT,
           "not arrived: rank 0");
    OK(cu.StreamSynchronize(r.stream));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_root_that_does_not_come_is_told_of)
{
    ck_assert_int_eq(far_fork(4, 2, wait_for_root), 0);
}
END_TEST

/* Rank 3 leaves without the call of the others: nobody's results may pass for good. */
static int leave_without(struct world_rank *me)
{
    struct device_rank r;
    void *at;
    int rc;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    if (me->rank != 3)
        WORLD_CHECK(me, !far_call(&r, at, 0));
    world_meet(me);
    rc = coll_comm_destroy(r.comm);
    WORLD_CHECK(me, rc == COLL_ERR_MISMATCH || rc == COLL_ERR_PEER);
    OK(cu.StreamSynchronize(r.stream));
    return 0;
}

START_TEST(who_leaves_without_a_call_is_told_of)
{
    ck_assert_int_eq(far_fork(4, 2, leave_without), 0);
}
END_TEST

/* A send to another host that nobody receives. */
static int send_in_vain(struct world_rank *me)
{
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(4);
    if (!me->rank)
        WORLD_CHECK(me, !coll_send(at, 1, COLL_I32, 1, r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    EXPECT(me, coll_comm_destroy(r.comm), COLL_ERR_MISMATCH,
           "each coll_send() needs its coll_recv()");
    return 0;
}

/* _i: whether calls are compared, which those of carried messages are not */
START_TEST(who_leaves_a_message_is_told_of)
{
    if (_i)
        setenv("COLL_CHECK", "1", 1);
    ck_assert_int_eq(far_fork(2, 1, send_in_vain), 0);
}
END_TEST

/* The caller's stream never comes to it: waits have an end all the same. */
static int wait_before(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .count = FAR_COUNT};
    _Atomic uint32_t *gate;
    struct coll_request *request;
    struct device_rank r;

    WORLD_CHECK(me, !far_join(&r, me));
    gate = fake_words(1);
    fake_hold(r.stream, gate);
    args.in = args.out = (void *)fake_memory(FAR_LEN);
    args.stream = r.stream;
    WORLD_CHECK(me, !coll_request_create(&args, r.comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    hurry(&r);
    EXPECT(me, coll_wait(request, 0), COLL_ERR_TIMEOUT,
           "a stream may be at other work");
    coll_request_destroy(request);
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(r.stream));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_stream_that_never_comes_is_not_waited_for_for_ever)
{
    ck_assert_int_eq(far_fork(4, 2, wait_before), 0);
}
END_TEST

/* A whole host dies while the streams of the others wait for it. */
static int outlive(struct world_rank *me)
{
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    WORLD_CHECK(me, !far_call(&r, at, 0));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, !world_barrier(me, r.comm));
    if (me->rank >= 4)
        raise(SIGKILL);
    far_call(&r, at, 0);
    EXPECT(me, world_await_failure(r.comm, patient(40)), COLL_ERR_PEER, "rank");
    OK(cu.StreamSynchronize(r.stream));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(streams_go_on_when_a_host_dies)
{
    ck_assert_int_eq(far_fork(6, 2, outlive), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("far_wrong");
    TCase *tc = tcase_create("far_wrong");

    if (far_lacks_hosts())
        return 77;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, calls_that_differ_are_told_of, 0, 2);
    tcase_add_test(tc, a_rank_that_does_not_come_is_told_of);
    tcase_add_test(tc, a_root_that_does_not_come_is_told_of);
    tcase_add_test(tc, who_leaves_without_a_call_is_told_of);
    tcase_add_loop_test(tc, who_leaves_a_message_is_told_of, 0, 2);
    tcase_add_test(tc, a_stream_that_never_comes_is_not_waited_for_for_ever);
    tcase_add_test(tc, streams_go_on_when_a_host_dies);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
