/* SPDX-License-Identifier: BSD-3-Clause */
/* test_p2p.c - messages between two ranks: blocking, side by side, to oneself,
 * among collectives. */
#include "tests/run/p2p.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/comm/comm.h"
#include "lib/util/util.h"
#include "lib/exec/exec.h"

#include <stdlib.h>
#include <string.h>

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
            WORLD_CHECK(me,
                        !coll_send(x, counts[n], COLL_U32, right, comm, NULL));
            memset(x, 0, sizeof(x));
        }
        WORLD_CHECK(me, !coll_recv(x, counts[n], COLL_U32, left, comm, NULL));
        WORLD_CHECK(me, is_right(x, counts[n], 0, 1, n));
        if (me->rank)
            WORLD_CHECK(me,
                        !coll_send(x, counts[n], COLL_U32, right, comm, NULL));
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
            WORLD_CHECK(
                me, !coll_send(x[n], counts[c], COLL_U32, right, comm, NULL));
        }
        for (int n = 0; n < 3; n++)
            WORLD_CHECK(
                me, !coll_recv(y[n], counts[c], COLL_U32, left, comm, NULL));
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
        WORLD_CHECK(
            me, !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL));
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

int main(void)
{
    Suite *suite = suite_create("p2p");
    TCase *c = tcase_create("p2p");

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
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
