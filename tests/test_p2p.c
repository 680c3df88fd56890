/* SPDX-License-Identifier: BSD-3-Clause */
/* test_p2p.c - messages between two ranks: blocking, side by side, to oneself,
 * among collectives; and what goes wrong with them. */
#include "tests/patience.h"
#include "tests/world.h"
#include "lib/api/comm.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 40
#define MOST 16 /* ranks */

/* Element i of message number n from one rank to another. */
static uint32_t element(int from, int to, int n, size_t i)
{
    return (uint32_t)(i * 2654435761u) ^ (uint32_t)(from << 20 | to << 10 | n);
}

static void fill(uint32_t *x, size_t count, int from, int to, int n)
{
    for (size_t i = 0; i < count; i++)
        x[i] = element(from, to, n, i);
}

static int is_right(const uint32_t *x, size_t count, int from, int to, int n)
{
    for (size_t i = 0; i < count; i++)
        if (x[i] != element(from, to, n, i))
            return 0;
    return 1;
}

static struct coll_args args_of(enum coll_collective kind, uint32_t *x,
                                size_t count, int peer)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = kind,
                              .type = COLL_U32,
                              .root = peer,
                              .in = kind == COLL_SEND ? x : NULL,
                              .out = kind == COLL_RECV ? x : NULL,
                              .count = count};
}

/* ---- how much work it is --------------------------------------------------- */

static int n_advances;

int __real_coll__prog_advance(struct coll__prog *prog, int *moved);
int __wrap_coll__prog_advance(struct coll__prog *prog, int *moved);

int __wrap_coll__prog_advance(struct coll__prog *prog, int *moved)
{
    n_advances++;
    return __real_coll__prog_advance(prog, moved);
}

/* ---- that it works ------------------------------------------------------- */

static const size_t counts[] = {0, 1, 7, 1000, 100003};

/* One after the other: a message goes round, larger each time. */
static int relay(struct world_rank *me)
{
    static uint32_t x[100003];
    int p = me->size, left = (me->rank + p - 1) % p, right = (me->rank + 1) % p;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int n = 0; n < (int)ARRAY_LEN(counts); n++) {
        if (me->rank == 0) {
            fill(x, counts[n], 0, 1, n);
            WORLD_CHECK(me, !coll_send(x, counts[n], COLL_U32, right, comm,
                                       NULL));
            memset(x, 0, sizeof(x));
        }
        WORLD_CHECK(me, !coll_recv(x, counts[n], COLL_U32, left, comm, NULL));
        WORLD_CHECK(me, is_right(x, counts[n], 0, 1, n));
        if (me->rank)
            WORLD_CHECK(me, !coll_send(x, counts[n], COLL_U32, right, comm,
                                       NULL));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* All at once: every rank sends round the ring, in a group, several messages
 * that arrive in order. */
static int ring(struct world_rank *me)
{
    static uint32_t x[3][100003], y[3][100003];
    int p = me->size, left = (me->rank + p - 1) % p, right = (me->rank + 1) % p;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int c = 0; c < (int)ARRAY_LEN(counts); c++) {
        WORLD_CHECK(me, !coll_group_start());
        for (int n = 0; n < 3; n++) {
            fill(x[n], counts[c], me->rank, right, n);
            WORLD_CHECK(me, !coll_send(x[n], counts[c], COLL_U32, right, comm,
                                       NULL));
        }
        for (int n = 0; n < 3; n++)
            WORLD_CHECK(me, !coll_recv(y[n], counts[c], COLL_U32, left, comm,
                                       NULL));
        WORLD_CHECK(me, !coll_group_end());
        for (int n = 0; n < 3; n++)
            WORLD_CHECK(me, is_right(y[n], counts[c], left, me->rank, n));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* An exchange among all, oneself too, with collectives before and after. */
static int exchange(struct world_rank *me)
{
    static uint32_t x[MOST][500], y[MOST][500];
    struct coll_comm *comm = world_join(me);
    int p = me->size, one = 1, sum, sum2;

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 20; n++) {
        WORLD_CHECK(me, !coll_group_start());
        WORLD_CHECK(me, !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM,
                                        comm, NULL));
        for (int r = 0; r < p; r++) {
            fill(x[r], 500, me->rank, r, n);
            WORLD_CHECK(me, !coll_send(x[r], 500, COLL_U32, r, comm, NULL));
        }
        for (int r = p - 1; r >= 0; r--)
            WORLD_CHECK(me, !coll_recv(y[r], 500, COLL_U32, r, comm, NULL));
        WORLD_CHECK(me, !coll_allreduce(&one, &sum2, 1, COLL_I32, COLL_SUM,
                                        comm, NULL));
        WORLD_CHECK(me, !coll_group_end());
        WORLD_CHECK(me, sum == p && sum2 == p);
        for (int r = 0; r < p; r++)
            WORLD_CHECK(me, is_right(y[r], 500, r, me->rank, n));
        WORLD_CHECK(me, !coll_barrier(comm, NULL));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

#define LARGE ((size_t)16 << 20) /* elements: 64 MiB */

/* Both send first: neither waits for the other's receive. */
static int both_send(struct world_rank *me)
{
    int peer = 1 - me->rank;
    uint32_t *x = malloc(LARGE * sizeof(*x)), *y = malloc(LARGE * sizeof(*y));
    struct coll_args send = args_of(COLL_SEND, x, LARGE, peer);
    struct coll_args recv = args_of(COLL_RECV, y, LARGE, peer);
    struct coll_request *requests[2];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && x && y);
    WORLD_CHECK(me, !coll_request_create(&send, comm, &requests[0]));
    WORLD_CHECK(me, !coll_request_create(&recv, comm, &requests[1]));
    for (int n = 0; n < 2; n++) {
        fill(x, LARGE, me->rank, peer, n);
        WORLD_CHECK(me, !coll_start(requests[0]));
        WORLD_CHECK(me, !coll_start(requests[1]));
        WORLD_CHECK(me, !coll_wait(requests[n], 0));
        WORLD_CHECK(me, !coll_wait(requests[1 - n], 0));
        WORLD_CHECK(me, is_right(y, LARGE, peer, me->rank, n));
    }
    for (int k = 0; k < 2; k++)
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    free(x);
    free(y);
    return 0;
}

/* To oneself by requests, finished by test, with a collective queued behind. */
static int self(struct world_rank *me)
{
    uint32_t x[100], y[100] = {0};
    struct coll_args send = args_of(COLL_SEND, x, 100, me->rank);
    struct coll_args recv = args_of(COLL_RECV, y, 100, me->rank);
    struct coll_args barrier = {.size = sizeof(barrier),
                                .collective = COLL_BARRIER};
    struct coll_args *all[] = {&recv, &send, &barrier};
    struct coll_request *requests[3];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    fill(x, 100, me->rank, me->rank, 0);
    for (int k = 0; k < 3; k++) {
        WORLD_CHECK(me, !coll_request_create(all[k], comm, &requests[k]));
        WORLD_CHECK(me, !coll_start(requests[k]));
    }
    for (int k = 2; k >= 0; k--) {
        int rc;

        while ((rc = coll_test(requests[k])) == COLL_IN_PROGRESS)
            continue;
        WORLD_CHECK(me, rc == COLL_OK);
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
    }
    WORLD_CHECK(me, is_right(y, 100, me->rank, me->rank, 0));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

static void run(int size, world_fn *fn, int by)
{
    setenv("COLL_TRANSPORTS", world_net(by ? "self," : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(size, fn, NULL, DEADLINE), 0);
}

START_TEST(a_message_goes_round_rank_by_rank)
{
    run(2 + _i / 2, relay, _i % 2);
}
END_TEST

START_TEST(groups_send_round_a_ring_at_once) { run(1 + _i / 2, ring, _i % 2); }
END_TEST

START_TEST(groups_exchange_among_all_between_collectives)
{
    run(1 + _i / 2, exchange, _i % 2);
}
END_TEST

START_TEST(two_ranks_that_both_send_first_go_on) { run(2, both_send, _i); }
END_TEST

START_TEST(a_rank_can_send_to_itself) { run(3, self, _i); }
END_TEST

#define N_OUTSTANDING 400
#define N_LONG 3000 /* elements of every eighth */

static size_t count_of(int n) { return n % 8 ? 1 : N_LONG; }

/* Send them one by one, each when the one before it has been answered. */
static int send_in_turn(struct world_rank *me, struct coll_comm *comm)
{
    static uint32_t x[N_LONG];
    uint32_t answer;

    for (int n = 0; n < N_OUTSTANDING; n++) {
        fill(x, count_of(n), 1, 0, n);
        WORLD_CHECK(me, !coll_send(x, count_of(n), COLL_U32, 0, comm, NULL));
        WORLD_CHECK(me, !coll_recv(&answer, 1, COLL_U32, 0, comm, NULL));
    }
    return 0;
}

static int receive_in_turn(struct world_rank *me, struct coll_comm *comm,
                           struct coll_request **requests,
                           uint32_t (*x)[N_LONG])
{
    uint32_t answer = 0;

    for (int n = 0; n < N_OUTSTANDING; n++)
        WORLD_CHECK(me, !coll_start(requests[n]));
    for (int n = 0; n < N_OUTSTANDING; n++) {
        WORLD_CHECK(me, !coll_wait(requests[n], 0));
        WORLD_CHECK(me, is_right(x[n], count_of(n), 1, 0, n));
        WORLD_CHECK(me, !coll_send(&answer, 1, COLL_U32, 1, comm, NULL));
    }
    return 0;
}

/* Each message is looked at when it has come, not whenever one of the others has:
 * that would be half the square of their number. */
static int many_outstanding(struct world_rank *me)
{
    static uint32_t x[N_OUTSTANDING][N_LONG];
    static struct coll_request *requests[N_OUTSTANDING];
    struct coll_comm *comm = world_join(me);
    int before = n_advances;

    WORLD_CHECK(me, comm);
    for (int n = 0; me->rank == 0 && n < N_OUTSTANDING; n++) {
        struct coll_args args = args_of(COLL_RECV, x[n], count_of(n), 1);

        WORLD_CHECK(me, !coll_request_create(&args, comm, &requests[n]));
    }
    for (int turn = 0; turn < 2; turn++)
        if (me->rank ? send_in_turn(me, comm)
                     : receive_in_turn(me, comm, requests, x))
            return 1;
    WORLD_CHECK(me, n_advances - before <= 4 * 2 * N_OUTSTANDING);
    for (int n = 0; n < N_OUTSTANDING; n++)
        WORLD_CHECK(me, me->rank || !coll_request_destroy(requests[n]));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_message_costs_the_same_however_many_are_outstanding)
{
    run(2, many_outstanding, _i);
}
END_TEST

/* ---- that it fails with words -------------------------------------------- */

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
    comm->timeout = 1; /* to join may take longer */
    if (me->rank == 0) {
        EXPECT(me, coll_recv(x, 4, COLL_U32, 1, comm, NULL), COLL_ERR_TIMEOUT,
               "recv #1 from 1 (4 u32) did not end within 1 s on rank 0");
        WORLD_CHECK(me, strstr(coll_last_error(),
                               "rank 1 is after barrier #1"));
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
        while (rc == COLL_OK || rc == COLL_IN_PROGRESS)
            rc = coll_test(request);
    } else {
        comm->timeout = 3;
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
    if (me->rank == 2) {
        rc = world_await_failure(comm, patient(20));
    } else {
        comm->timeout = me->rank ? 2 : patient(20);
        rc = me->rank ? coll_barrier(comm, NULL)
                      : coll_recv(x, 4, COLL_U32, 2, comm, NULL);
    }
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "barrier #1 did not end within 2 s");
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "not arrived: rank 0, 2 (rank 0 is in recv #1 from "
                           "2 (4 u32))"));
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
    comm->timeout = me->rank ? 2 : patient(20);
    if (me->rank == 2) {
        rc = world_await_failure(comm, patient(20));
    } else if (me->rank == 1) {
        WORLD_CHECK(me, !coll_gather(x, all, 4, COLL_U32, 0, comm, NULL));
        rc = coll_barrier(comm, NULL);
    } else {
        WORLD_CHECK(me, !coll_start(request));
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
    WORLD_CHECK(me,
                !coll_allreduce(x, y, 4, COLL_I32, COLL_SUM, comm, NULL));
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
    Suite *suite = suite_create("p2p");
    TCase *c = tcase_create("p2p");
    SRunner *runner = srunner_create(suite);
    int failed;

    patient_timeout(30);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, a_message_goes_round_rank_by_rank, 0, 8);
    tcase_add_loop_test(c, groups_send_round_a_ring_at_once, 0, 8);
    tcase_add_loop_test(c, groups_exchange_among_all_between_collectives, 0,
                        10);
    tcase_add_loop_test(c, two_ranks_that_both_send_first_go_on, 0, 2);
    tcase_add_loop_test(c, a_rank_can_send_to_itself, 0, 2);
    tcase_add_loop_test(
        c, a_message_costs_the_same_however_many_are_outstanding, 0, 2);
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
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
