/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_messages.c - sends and receives from GPU to GPU, over the fake CUDA driver:
 * groups, large and small, beside collectives, captured, and those that nobody takes. */
#include "tests/support/side_by_side.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 5000, LEN = 4 * COUNT };

static int32_t *numbers_from(int first) { return device_numbers(first, COUNT); }

static int holds(const int32_t *device, int first, size_t count)
{
    return device_holds(device, first, 1, count);
}

/* Counts that two ranks know of: of all lengths, also 0. */
static size_t count_of(int from, int to, int round)
{
    static const size_t counts[] = {1, COUNT, 0, 1024, 1025, 3};

    return counts[(size_t)(from + 2 * to + round) % 6];
}

/* Each to each, itself as well, twice; between pinned memory, too. */
static int all_to_all(struct world_rank *me)
{
    int32_t *from[8], *to[8], *pinned[2];
    struct device_rank r;
    int p = me->size;

    WORLD_CHECK(me, !device_join(&r, me));
    for (int q = 0; q < p; q++) {
        from[q] = numbers_from(100 * me->rank + q);
        to[q] = numbers_from(0);
    }
    for (int i = 0; i < 2; i++)
        pinned[i] = (int32_t *)fake_words(COUNT);
    for (int i = 0; i < COUNT; i++)
        pinned[0][i] = i;
    for (int n = 0; n < 6; n++) {
        WORLD_CHECK(me, !coll_group_start());
        for (int q = 0; q < p; q++) {
            WORLD_CHECK(me, !coll_send(from[q], count_of(me->rank, q, n),
                                       COLL_I32, q, r.comm, r.stream));
            WORLD_CHECK(me, !coll_recv(to[q], count_of(q, me->rank, n),
                                       COLL_I32, q, r.comm, r.stream));
        }
        WORLD_CHECK(me, !coll_recv(pinned[1], COUNT, COLL_I32, me->rank, r.comm,
                                   r.stream));
        WORLD_CHECK(me, !coll_send(pinned[0], COUNT, COLL_I32, me->rank, r.comm,
                                   r.stream));
        WORLD_CHECK(me, !coll_group_end());
        OK(cu.StreamSynchronize(r.stream));
        for (int q = 0; q < p; q++)
            WORLD_CHECK(
                me, holds(to[q], 100 * q + me->rank, count_of(q, me->rank, n)));
        WORLD_CHECK(me, !memcmp(pinned[0], pinned[1], LEN));
    }
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(a_group_exchanges_messages_of_all_lengths)
{
    coll__limit_assume(LIMIT_CUDA_SLOTS, _i % 2 ? 1 : 2);
    ck_assert_int_eq(device_fork(_i, all_to_all, NULL), 0);
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    ck_assert_int_eq(device_threads(4, all_to_all, NULL), 0);
}
END_TEST

/* Several of one call's peer, in calls and groups that differ at the two ends; and a
 * sum between a message's ends. */
static int out_of_step(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at, *sum;
    int peer = !me->rank;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(1000 * me->rank);
    sum = numbers_from(0);
    for (int n = 0; n < 4; n++) {
        if (me->rank) {
            WORLD_CHECK(me,
                        !coll_send(at, 2, COLL_I32, peer, r.comm, r.stream));
            WORLD_CHECK(me, !coll_allreduce(sum, sum, COUNT, COLL_I32, COLL_MAX,
                                            r.comm, r.stream));
            WORLD_CHECK(me, !coll_group_start());
            for (int i = 0; i < 3; i++)
                WORLD_CHECK(me, !coll_send(at + 1000 * i, 1000, COLL_I32, peer,
                                           r.comm, r.stream));
            WORLD_CHECK(me, !coll_group_end());
            continue;
        }
        WORLD_CHECK(me, !coll_allreduce(sum, sum, COUNT, COLL_I32, COLL_MAX,
                                        r.comm, r.stream));
        WORLD_CHECK(me, !coll_recv(at, 2, COLL_I32, peer, r.comm, r.stream));
        WORLD_CHECK(me, !coll_recv(at, 1000, COLL_I32, peer, r.comm, r.stream));
        WORLD_CHECK(me, !coll_group_start());
        for (int i = 1; i < 3; i++)
            WORLD_CHECK(me, !coll_recv(at + 1000 * i, 1000, COLL_I32, peer,
                                       r.comm, r.stream));
        WORLD_CHECK(me, !coll_group_end());
    }
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(at, 1000, 3000) && holds(sum, 0, COUNT));
    return device_leave(&r);
}

START_TEST(messages_keep_their_order_and_are_in_nobodys_way)
{
    ck_assert_int_eq(device_fork(2, out_of_step, NULL), 0);
}
END_TEST

/* A ring of neighbours, with a sum, in a graph; by turns with calls. */
static int replay(struct world_rank *me)
{
    int p = me->size, left = (me->rank + p - 1) % p, right = (me->rank + 1) % p;
    int32_t *from, *to;
    struct device_rank r;
    CUgraphExec exec;
    CUgraph graph;

    WORLD_CHECK(me, !device_join(&r, me));
    from = numbers_from(me->rank);
    to = numbers_from(0);
    OK(cu.StreamBeginCapture(r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me, !coll_recv(to, COUNT, COLL_I32, left, r.comm, r.stream));
    WORLD_CHECK(me, !coll_send(from, COUNT, COLL_I32, right, r.comm, r.stream));
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, !coll_barrier(r.comm, r.stream));
    OK(cu.StreamEndCapture(r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int n = 0; n < 200; n++) {
        OK(cu.GraphLaunch(exec, r.stream));
        if (n % 50)
            continue;
        OK(cu.StreamSynchronize(r.stream));
        WORLD_CHECK(me, holds(to, left, COUNT));
        OK(cu.MemsetD8Async((CUdeviceptr)to, 0, LEN, r.stream));
        WORLD_CHECK(me,
                    !coll_broadcast(to, to, 10, COLL_I32, 0, r.comm, r.stream));
    }
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(to, left, COUNT));
    OK(cu.GraphExecDestroy(exec));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(messages_are_parts_of_graphs)
{
    ck_assert_int_eq(device_fork(_i, replay, NULL), 0);
}
END_TEST

/* Rank 0 sends more than the slots hold, or waits for a message; rank 1 has come, but
 * to nothing of the kind. */
static int nobody_takes(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(0);
    WORLD_CHECK(me, !coll_barrier(r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    if (!me->rank) {
        if (me->arg)
            WORLD_CHECK(me,
                        !coll_send(at, COUNT, COLL_I32, 1, r.comm, r.stream));
        else
            WORLD_CHECK(me,
                        !coll_recv(at, COUNT, COLL_I32, 1, r.comm, r.stream));
        OK(cu.StreamSynchronize(r.stream));
    }
    EXPECT(me, world_await_failure(r.comm, patient(20)), COLL_ERR_TIMEOUT,
           me->arg
               ? "send #1 to 1 (5000 i32) on a stream did not end within"
               : "recv #1 from 1 (5000 i32) on a stream did not end within");
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "rank 1 is after barrier #1 on a stream"));
    coll_comm_destroy(r.comm);
    return 0;
}

/* _i: which */
START_TEST(a_message_that_nobody_takes_or_sends_is_told)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, nobody_takes, _i ? "" : NULL, patient(60)),
                     0);
}
END_TEST

/* What is left in a slot is found when all go; and so is a peer that leaves. */
static int one_too_many(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(0);
    if (!me->rank)
        WORLD_CHECK(me, !coll_send(at, 1, COLL_I32, 1, r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    EXPECT(me, coll_comm_destroy(r.comm), COLL_ERR_MISMATCH,
           "sent 1 messages and received 0");
    return 0;
}

START_TEST(the_end_counts_messages)
{
    ck_assert_int_eq(device_fork(2, one_too_many, NULL), 0);
}
END_TEST

static int wrong_halves(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(0);
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me, !coll_send(at, 2, COLL_I32, me->rank, r.comm, r.stream));
    WORLD_CHECK(me,
                !coll_recv(at + 2, 1, COLL_I32, me->rank, r.comm, r.stream));
    EXPECT(
        me, coll_group_end(), COLL_ERR_INVALID,
        "the matching send or receive in the same group, with the same count");
    return device_leave(&r);
}

START_TEST(halves_of_a_message_to_oneself_are_alike)
{
    ck_assert_int_eq(device_fork(2, wrong_halves, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_messages");
    TCase *tc = tcase_create("cuda_messages");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_group_exchanges_messages_of_all_lengths, 1, 7);
    tcase_add_test(tc, ranks_may_be_threads);
    tcase_add_test(tc, messages_keep_their_order_and_are_in_nobodys_way);
    tcase_add_loop_test(tc, messages_are_parts_of_graphs, 2, 5);
    tcase_add_loop_test(tc, a_message_that_nobody_takes_or_sends_is_told, 0, 2);
    tcase_add_test(tc, the_end_counts_messages);
    tcase_add_test(tc, halves_of_a_message_to_oneself_are_alike);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
