/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_check_messages.c - COLL_CHECK=1 over the fake CUDA driver: sends and receives
 * from GPU to GPU whose ends are not alike end as COLL_ERR_MISMATCH, before a byte has
 * come; and those that are alike go as ever. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 5000, LEN = 4 * COUNT /* five slots */ };

struct rank {
    struct device_rank r;
    int32_t *in, *out;
    int peer; /* of two: the other one */
};

static int32_t *numbers_from(int first) { return device_numbers(first, COUNT); }

static int holds(const int32_t *device, int first, size_t count)
{
    return device_holds(device, first, 1, count);
}

static int join(struct rank *k, struct world_rank *me)
{
    if (device_join(&k->r, me))
        return 1;
    k->in = numbers_from(1000 * me->rank);
    k->out = numbers_from(-COUNT);
    k->peer = !me->rank;
    return 0;
}

static int send_to(const struct rank *k, int peer, size_t count,
                   enum coll_type type)
{
    return coll_send(k->in, count, type, peer, k->r.comm, k->r.stream);
}

static int recv_from(const struct rank *k, int peer, size_t count,
                     enum coll_type type)
{
    return coll_recv(k->out, count, type, peer, k->r.comm, k->r.stream);
}

/* What a receiver takes where a sender sends `sent` i32. */
static const struct difference {
    size_t sent, taken;
    enum coll_type type;
    const char *words;
} differences[] = {
    {1, 2, COLL_I32, "recv #2 from 0 (2 i32) on a stream"},
    {COUNT, COUNT - 1, COLL_I32, "recv #2 from 0 (4999 i32) on a stream"},
    {1024, COUNT, COLL_I32, "recv #2 from 0 (5000 i32) on a stream"},
    {0, 1, COLL_I32, "recv #2 from 0 (1 i32) on a stream"},
    {100, 100, COLL_F32, "recv #2 from 0 (100 f32) on a stream"},
    {100, 200, COLL_F16, "recv #2 from 0 (200 f16) on a stream"},
};

enum { N_DIFFERENCES = sizeof(differences) / sizeof(differences[0]) };

/* In a group, or not; rank 0's call may have gone into its stream by then. */
static int differ(struct world_rank *me)
{
    const struct difference *d = me->arg;
    struct rank k;
    int rc;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, (me->rank ? recv_from : send_to)(&k, k.peer, 10,
                                                     COLL_I32) == COLL_OK);
    if (me->rank) {
        EXPECT(me, recv_from(&k, 0, d->taken, d->type), COLL_ERR_MISMATCH,
               d->words);
        WORLD_CHECK(me,
                    strstr(coll_last_error(), "rank 0 called send #2 to 1"));
    } else {
        rc = send_to(&k, 1, d->sent, COLL_I32);
        WORLD_CHECK(me, rc == COLL_OK || rc == COLL_ERR_MISMATCH);
        EXPECT(me, world_await_failure(k.r.comm, patient(20)),
               COLL_ERR_MISMATCH, d->words);
    }
    OK(cu.StreamSynchronize(k.r.stream)); /* which nobody holds */
    WORLD_CHECK(me, holds(k.out + 10, -COUNT + 10, COUNT - 10));
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: the difference */
START_TEST(ends_that_are_not_alike_are_told)
{
    patient_timeout(30);
    ck_assert_int_eq(
        world_fork(2, differ, (void *)&differences[_i], patient(60)), 0);
}
END_TEST

/* Round a ring, by a group; the last rank sends one element less. */
static int ring(struct world_rank *me)
{
    int p = me->size, left = (me->rank + p - 1) % p, right = (me->rank + 1) % p;
    int is_last = me->rank == p - 1, rc;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (int round = 0; round < 3; round++) {
        WORLD_CHECK(me, !coll_group_start());
        WORLD_CHECK(me, !recv_from(&k, left, COUNT, COLL_I32));
        WORLD_CHECK(
            me, !send_to(&k, right, COUNT - (round == 2 && is_last), COLL_I32));
        rc = coll_group_end();
        if (round < 2) {
            WORLD_CHECK(me, rc == COLL_OK);
            OK(cu.StreamSynchronize(k.r.stream));
            WORLD_CHECK(me, holds(k.out, 1000 * left, COUNT));
        } else {
            EXPECT(me, world_await_failure(k.r.comm, patient(20)),
                   COLL_ERR_MISMATCH, "(4999 i32) on a stream");
        }
        world_meet(me);
    }
    OK(cu.StreamSynchronize(k.r.stream));
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(groups_of_messages_are_compared)
{
    ck_assert_int_eq(device_fork(_i, ring, NULL), 0);
}
END_TEST

/* Rank 0 sends to rank 1, which waits for rank 2, which has come to a sum of all. */
static int other_peer(struct world_rank *me)
{
    struct rank k;
    int rc = COLL_OK;

    WORLD_CHECK(me, !join(&k, me));
    if (!me->rank)
        WORLD_CHECK(me, !send_to(&k, 1, 1, COLL_I32));
    world_meet(me);
    if (me->rank == 1)
        rc = recv_from(&k, 2, 1, COLL_I32);
    if (rc == COLL_OK)
        rc = coll_allreduce(k.in, k.out, 1, COLL_I32, COLL_SUM, k.r.comm,
                            k.r.stream);
    EXPECT(me, rc, COLL_ERR_MISMATCH,
           "rank 1 called recv #1 from 2 (1 i32) on a stream");
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "rank 2 called allreduce #1 (1 i32, sum)"));
    OK(cu.StreamSynchronize(k.r.stream));
    coll_comm_destroy(k.r.comm);
    return 0;
}

START_TEST(another_peer_is_told)
{
    ck_assert_int_eq(device_fork(3, other_peer, NULL), 0);
}
END_TEST

/* A message that nobody sends: its peer is asked. */
static int nobody_sends(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    if (me->rank)
        EXPECT(me, recv_from(&k, 0, 1, COLL_I32), COLL_ERR_TIMEOUT,
               "recv #1 from 0 (1 i32) on a stream did not end within");
    else
        WORLD_CHECK(me, world_await_failure(k.r.comm, patient(20)) ==
                            COLL_ERR_TIMEOUT);
    OK(cu.StreamSynchronize(k.r.stream));
    coll_comm_destroy(k.r.comm);
    return 0;
}

START_TEST(a_message_that_does_not_come_is_told)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, nobody_sends, NULL, patient(60)), 0);
}
END_TEST

/* What is captured is compared then; and one that was captured alone counts when all
 * go. */
static int capture(struct world_rank *me)
{
    CUgraph graph;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, (me->rank ? recv_from : send_to)(&k, k.peer, COUNT,
                                                     COLL_I32) == COLL_OK);
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    device_launch(&k.r, graph, 3);
    WORLD_CHECK(me, !me->rank || holds(k.out, 0, COUNT));
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (!me->rank)
        WORLD_CHECK(me, !send_to(&k, 1, 1, COLL_I32));
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    EXPECT(me, coll_comm_destroy(k.r.comm), COLL_ERR_MISMATCH,
           "sent 2 messages and received 1");
    return 0;
}

START_TEST(what_is_captured_is_compared_then)
{
    ck_assert_int_eq(device_fork(2, capture, NULL), 0);
}
END_TEST

/* Messages that lie in slots until they are taken, beside those of the host in another
 * order; to oneself; by requests; with sums of both kinds between. */
static int agree(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = me->rank ? COLL_RECV : COLL_SEND,
                             .type = COLL_I32,
                             .root = !me->rank,
                             .count = COUNT};
    int32_t host = me->rank, sum = 1;
    struct coll_request *request;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    args.in = args.out = me->rank ? k.out : k.in;
    args.stream = k.r.stream;
    WORLD_CHECK(me, !coll_request_create(&args, k.r.comm, &request));
    for (int i = 0; i < 5; i++) {
        if (me->rank) {
            WORLD_CHECK(me, !coll_recv(&host, 1, COLL_I32, 0, k.r.comm, NULL));
            WORLD_CHECK(me, host == i);
            WORLD_CHECK(me, !coll_allreduce(&sum, &sum, 1, COLL_I32, COLL_MAX,
                                            k.r.comm, NULL));
            WORLD_CHECK(me, !recv_from(&k, 0, 10, COLL_I32));
        } else {
            host = i;
            WORLD_CHECK(me, !send_to(&k, 1, 10, COLL_I32));
            WORLD_CHECK(me, !coll_send(&host, 1, COLL_I32, 1, k.r.comm, NULL));
            WORLD_CHECK(me, !coll_allreduce(&sum, &sum, 1, COLL_I32, COLL_MAX,
                                            k.r.comm, NULL));
        }
        WORLD_CHECK(me, !coll_barrier(k.r.comm, k.r.stream));
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, !coll_group_start());
        WORLD_CHECK(
            me, !coll_send(k.in, 7, COLL_I32, me->rank, k.r.comm, k.r.stream));
        WORLD_CHECK(
            me, !coll_recv(k.out, 7, COLL_I32, me->rank, k.r.comm, k.r.stream));
        WORLD_CHECK(me, !coll_group_end());
    }
    OK(cu.StreamSynchronize(k.r.stream));
    WORLD_CHECK(me, holds(k.out, 1000 * me->rank, 7));
    WORLD_CHECK(me, !me->rank || holds(k.out + 7, 7, COUNT - 7));
    WORLD_CHECK(me, !coll_request_destroy(request));
    return device_leave(&k.r);
}

START_TEST(ends_that_agree_see_no_difference)
{
    ck_assert_int_eq(device_fork(2, agree, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_check_messages");
    TCase *tc = tcase_create("cuda_check_messages");

    setenv("COLL_CHECK", "1", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, ends_that_are_not_alike_are_told, 0, N_DIFFERENCES);
    tcase_add_loop_test(tc, groups_of_messages_are_compared, 2, 5);
    tcase_add_test(tc, another_peer_is_told);
    tcase_add_test(tc, a_message_that_does_not_come_is_told);
    tcase_add_test(tc, what_is_captured_is_compared_then);
    tcase_add_test(tc, ends_that_agree_see_no_difference);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
