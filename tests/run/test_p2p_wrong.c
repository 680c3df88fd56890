/* SPDX-License-Identifier: BSD-3-Clause */
/* test_p2p_wrong.c - what goes wrong with messages between two ranks is told with
 * words: another count, nobody at the other end, waits for each other. */
#include "tests/run/p2p.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"
#include "lib/comm/comm.h"

#include <string.h>
#include <unistd.h>

static int other_count(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[8] = {0};
    int rc = COLL_OK;

    WORLD_CHECK(me, comm);
    if (me->rank == 1)
        rc = coll_send(x, 4, COLL_U32, 0, comm, NULL);
    else if (me->rank == 0)
        rc = coll_recv(x, 8, COLL_U32, 1, comm, NULL);
    while (rc == COLL_OK) /* it was small enough to be on its way */
        rc = coll_comm_async_error(comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "rank 1 called send #1 to 0 (4 u32)");
    WORLD_CHECK(me, strstr(coll_last_error(), "recv #1 from 1 (8 u32)"));
    WORLD_CHECK(me, strstr(coll_last_error(), "the same count and type"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* A message need not keep its place among collectives. */
static int send_before_collective(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[8] = {3}, y[8];

    WORLD_CHECK(me, comm);
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_send(x, 4, COLL_I32, 0, comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(x, y, 8, COLL_I32, COLL_SUM, comm, NULL));
    if (me->rank == 0)
        WORLD_CHECK(me, !coll_recv(y, 4, COLL_I32, 1, comm, NULL) && *y == 3);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

static int nobody_sends(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4];

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    world_hurry(comm, 1);
    if (me->rank == 0) {
        EXPECT(me, coll_recv(x, 4, COLL_U32, 1, comm, NULL), COLL_ERR_TIMEOUT,
               "recv #1 from 1 (4 u32) did not end within 1 s on rank 0");
        WORLD_CHECK(me,
                    strstr(coll_last_error(), "rank 1 is after barrier #1"));
    } else {
        EXPECT(me, world_await_failure(comm, 20), COLL_ERR_TIMEOUT, "recv #1");
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

/* Rank 0 waits for a message of rank 2, which waits in a collective that takes
 * rank 0; of five ranks the barrier sends nothing from 2 to 0, so they must ask. */
static int recv_for_barrier(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4];
    int rc;

    WORLD_CHECK(me, comm);
    rc = me->rank ? coll_barrier(comm, NULL)
                  : coll_recv(x, 4, COLL_U32, 2, comm, NULL);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "rank 2 called barrier #1");
    WORLD_CHECK(
        me, strstr(coll_last_error(), "rank 0 called recv #1 from 2 (4 u32)"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* The same: rank 2's scan takes the ranks before it. */
static int recv_for_scan(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4] = {0}, y[4];
    int rc;

    WORLD_CHECK(me, comm);
    rc = me->rank ? coll_scan(x, y, 4, COLL_U32, COLL_SUM, comm, NULL)
                  : coll_recv(y, 4, COLL_U32, 2, comm, NULL);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "rank 2 called scan #1 (4 u32, sum)");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* The same with a send, which may be too large to be on its way. */
static int send_for_allreduce(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[1 << 24], y[10]; /* more than sockets hold */
    int rc;

    WORLD_CHECK(me, comm);
    rc = me->rank ? coll_allreduce(x, y, 10, COLL_I32, COLL_SUM, comm, NULL)
                  : coll_send(x, 1 << 24, COLL_I32, 2, comm, NULL);
    while (rc == COLL_OK) /* it was on its way */
        rc = coll_comm_async_error(comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "allreduce #1 (10 i32, sum)");
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 0 called send #1 to 2"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* The same, but that rank 1 does not wait for its collective, it tests it: the
 * message may still be sent. */
static int recv_from_tester(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args barrier = {.size = sizeof(barrier),
                                .collective = COLL_BARRIER};
    struct coll_request *request;
    uint32_t x[4];
    int rc;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&barrier, comm, &request));
    if (me->rank) {
        rc = coll_start(request);
        world_meet(me); /* rank 1 has come into the barrier */
        while (rc == COLL_OK || rc == COLL_IN_PROGRESS)
            rc = coll_test(request);
    } else {
        world_meet(me);
        world_hurry(comm, 1.5);
        rc = coll_recv(x, 4, COLL_U32, 1, comm, NULL);
    }
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "recv #1 from 1 (4 u32) did not end");
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 1 is in barrier #1"));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

/* Who waits in a collective learns that the late one is in a receive. */
static int stuck_in_recv(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4];
    int rc;

    WORLD_CHECK(me, comm);
    world_meet(me); /* rank 0 has time to come into the receive */
    if (me->rank == 2) {
        rc = world_await_failure(comm, patient(20));
    } else {
        world_hurry(comm, me->rank ? 2 : patient(20));
        rc = me->rank ? coll_barrier(comm, NULL)
                      : coll_recv(x, 4, COLL_U32, 2, comm, NULL);
    }
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "barrier #1 did not end within 2 s");
    WORLD_CHECK(me, strstr(coll_last_error(), "not arrived: rank 0, 2"));
    WORLD_CHECK(
        me, strstr(coll_last_error(), "(rank 0 is in recv #1 from 2 (4 u32))"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

/* And that it is in a collective, beside a receive which does not hold it up. */
static int stuck_beside_recv(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4] = {0}, all[12], y[4];
    struct coll_args recv = args_of(COLL_RECV, y, 4, 2);
    struct coll_request *request;
    int rc;

    WORLD_CHECK(me, comm && !coll_request_create(&recv, comm, &request));
    WORLD_CHECK(me, me->rank || !coll_start(request));
    world_meet(me);
    world_hurry(comm, me->rank ? 2 : patient(20));
    if (me->rank == 2) {
        rc = world_await_failure(comm, patient(20));
    } else if (me->rank == 1) {
        WORLD_CHECK(me, !coll_gather(x, all, 4, COLL_U32, 0, comm, NULL));
        rc = coll_barrier(comm, NULL);
    } else {
        rc = coll_gather(x, all, 4, COLL_U32, 0, comm, NULL);
    }
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "barrier #2 did not end within 2 s");
    WORLD_CHECK(me, strstr(coll_last_error(), "(rank 0 is in gather #1 "));
    WORLD_CHECK(me, strstr(coll_last_error(), " and recv #1 from 2 (4 u32))"));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

/* A rank waits in a receive while others are in a collective already, for
 * longer than it takes them to look around and to ask: no false alarm. */
static int late_but_legal(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[4], y[4];

    WORLD_CHECK(me, comm);
    if (me->rank == 1)
        sleep(3);
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_send(x, 4, COLL_I32, 0, comm, NULL));
    if (me->rank == 0)
        WORLD_CHECK(me, !coll_recv(y, 4, COLL_I32, 1, comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(x, y, 4, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* Nothing receives it; with a started receive it is an ordinary message. */
static int to_itself(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4] = {7}, y[4] = {0};
    struct coll_args recv = args_of(COLL_RECV, y, 4, me->rank);
    struct coll_request *request;

    WORLD_CHECK(me, comm);
    EXPECT(me, coll_send(x, 4, COLL_U32, me->rank, comm, NULL),
           COLL_ERR_INVALID, "to itself would wait for ever; use a group");
    EXPECT(me, coll_recv(y, 4, COLL_U32, me->rank, comm, NULL),
           COLL_ERR_INVALID, "to itself would wait for ever; use a group");
    WORLD_CHECK(me, !coll_request_create(&recv, comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !coll_send(x, 4, COLL_U32, me->rank, comm, NULL));
    WORLD_CHECK(me, !coll_wait(request, 0) && y[0] == 7);
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

static int never_received(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4] = {0};

    WORLD_CHECK(me, comm);
    if (me->rank == 0)
        WORLD_CHECK(me, !coll_send(x, 4, COLL_U32, 1, comm, NULL));
    EXPECT(me, coll_comm_destroy(comm), COLL_ERR_MISMATCH,
           "sent 1 messages and received 0");
    return 0;
}

START_TEST(another_count_at_the_other_end_is_told_to_both)
{
    run(3, other_count, _i);
}
END_TEST

START_TEST(a_message_may_be_received_after_a_later_collective)
{
    run(2, send_before_collective, _i);
}
END_TEST

START_TEST(a_recv_that_nobody_sends_names_its_peer)
{
    run(2, nobody_sends, _i);
}
END_TEST

START_TEST(a_collective_names_the_rank_that_waits_in_a_recv)
{
    setenv("COLL_ALGO", "dissemination", 1);
    run(5, stuck_in_recv, _i);
}
END_TEST

START_TEST(a_collective_names_all_that_the_late_rank_is_in)
{
    run(3, stuck_beside_recv, _i);
}
END_TEST

START_TEST(a_message_and_a_collective_that_wait_for_each_other_are_told)
{
    setenv("COLL_ALGO", "dissemination", 1);
    run(5, recv_for_barrier, _i);
    unsetenv("COLL_ALGO");
    run(3, recv_for_scan, _i);
    run(3, send_for_allreduce, _i);
}
END_TEST

START_TEST(a_collective_that_is_only_tested_keeps_nobody)
{
    setenv("COLL_ALGO", "dissemination", 1);
    run(5, recv_from_tester, _i);
}
END_TEST

START_TEST(waiting_in_a_recv_while_others_go_ahead_is_legal)
{
    run(4, late_but_legal, _i);
}
END_TEST

START_TEST(a_blocking_message_to_itself_is_refused) { run(2, to_itself, _i); }
END_TEST

START_TEST(a_message_that_nobody_received_is_told_when_leaving)
{
    run(2, never_received, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("p2p_wrong");
    TCase *c = tcase_create("p2p_wrong");

    patient_timeout(30);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, another_count_at_the_other_end_is_told_to_both, 0,
                        2);
    tcase_add_loop_test(c, a_message_may_be_received_after_a_later_collective,
                        0, 2);
    tcase_add_loop_test(c, a_recv_that_nobody_sends_names_its_peer, 0, 2);
    tcase_add_loop_test(c, a_collective_names_the_rank_that_waits_in_a_recv, 0,
                        2);
    tcase_add_loop_test(c, a_collective_names_all_that_the_late_rank_is_in, 0,
                        2);
    tcase_add_loop_test(
        c, a_message_and_a_collective_that_wait_for_each_other_are_told, 0, 2);
    tcase_add_loop_test(c, a_collective_that_is_only_tested_keeps_nobody, 0, 2);
    tcase_add_loop_test(c, waiting_in_a_recv_while_others_go_ahead_is_legal, 0,
                        2);
    tcase_add_loop_test(c, a_blocking_message_to_itself_is_refused, 0, 2);
    tcase_add_test(c, a_message_that_nobody_received_is_told_when_leaving);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
