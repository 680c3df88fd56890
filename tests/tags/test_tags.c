/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tags.c - messages with tags between ranks: from anybody, in order, short and long,
 * to oneself, in groups and requests. */
#include "tests/tags/tags.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/tags/tags.h"
#include "lib/util/util.h"

#include <string.h>

#define STATUS                                                                 \
    {                                                                          \
        .size = sizeof(struct coll_recv_status)                                \
    }

static const size_t counts[] = {0, 1, 7, 1000, 2048, 2049, 100003};
#define N_COUNTS ((int)ARRAY_LEN(counts))
#define LARGEST 100003

static size_t count_of(int n) { return counts[n % N_COUNTS]; }

/* ---- from anybody ---------------------------------------------------------- */

#define EACH 40 /* messages of each rank */

static int serve(struct world_rank *me, struct coll_comm *comm)
{
    static uint32_t x[LARGEST];
    int n_from[16] = {0};

    for (int n = 0; n < EACH * (me->size - 1); n++) {
        struct coll_recv_status s = STATUS;

        WORLD_CHECK(me, !coll_recv_tagged(x, LARGEST, COLL_U32, COLL_ANY_RANK,
                                          COLL_ANY_TAG, comm, NULL, &s));
        WORLD_CHECK(me, s.source > 0 && s.source < me->size);
        WORLD_CHECK(me, s.tag == n_from[s.source] * 3);
        WORLD_CHECK(me, s.count == count_of(n_from[s.source]));
        WORLD_CHECK(me, tags_are(x, s.count, s.source, 0, n_from[s.source]));
        n_from[s.source]++;
    }
    for (int r = 1; r < me->size; r++)
        WORLD_CHECK(me, n_from[r] == EACH);
    return 0;
}

static int many_to_one(struct world_rank *me)
{
    static uint32_t x[LARGEST];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int n = 0; n < EACH && me->rank; n++) {
        tags_fill(x, count_of(n), me->rank, 0, n);
        WORLD_CHECK(me, !coll_send_tagged(x, count_of(n), COLL_U32, 0, n * 3,
                                          comm, NULL));
    }
    if (!me->rank && serve(me, comm))
        return 1;
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* ---- which message --------------------------------------------------------- */

/* Messages 0 to 5 have the tags 5 6 5 7 6 5, and are taken in another order. */
static int by_tag(struct world_rank *me)
{
    static const int tags[] = {5, 6, 5, 7, 6, 5};
    static const struct {
        int tag, is;
    } wanted[] = {{7, 3}, {5, 0}, {COLL_ANY_TAG, 1}, {5, 2}, {5, 5}, {6, 4}};
    static uint32_t x[6][LARGEST], y[LARGEST];
    struct coll_comm *comm = world_join(me);
    struct coll_request *sends[6];

    WORLD_CHECK(me, comm);
    for (int c = 0; c < N_COUNTS; c++) {
        for (int n = 0; n < 6 && me->rank == 1; n++) {
            struct coll_args args =
                tags_send(x[n], count_of(c + n), 0, tags[n]);

            tags_fill(x[n], count_of(c + n), 1, 0, n);
            WORLD_CHECK(me, !coll_request_create(&args, comm, &sends[n]));
            WORLD_CHECK(me, !coll_start(sends[n]));
        }
        for (int n = 0; n < 6 && me->rank == 0; n++) {
            int is = wanted[n].is;
            struct coll_recv_status s = STATUS;

            WORLD_CHECK(me, !coll_recv_tagged(y, LARGEST, COLL_U32, 1,
                                              wanted[n].tag, comm, NULL, &s));
            WORLD_CHECK(me, s.source == 1 && s.tag == tags[is]);
            WORLD_CHECK(me, s.count == count_of(c + is));
            WORLD_CHECK(me, tags_are(y, s.count, 1, 0, is));
        }
        for (int n = 0; n < 6 && me->rank == 1; n++) {
            WORLD_CHECK(me, !coll_wait(sends[n], 0));
            WORLD_CHECK(me, !coll_request_destroy(sends[n]));
        }
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* Messages without a tag and messages with one, in the opposite order at the receiver. */
static int two_streams(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t plain = 1, tagged = 2, got = 0;

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 20; n++) {
        if (me->rank == 1) {
            WORLD_CHECK(me, !coll_send(&plain, 1, COLL_U32, 0, comm, NULL));
            WORLD_CHECK(
                me, !coll_send_tagged(&tagged, 1, COLL_U32, 0, 0, comm, NULL));
        } else {
            WORLD_CHECK(me, !coll_recv_tagged(&got, 1, COLL_U32, COLL_ANY_RANK,
                                              COLL_ANY_TAG, comm, NULL, NULL));
            WORLD_CHECK(me, got == 2);
            WORLD_CHECK(me, !coll_recv(&got, 1, COLL_U32, 1, comm, NULL));
            WORLD_CHECK(me, got == 1);
        }
        WORLD_CHECK(me, !coll_barrier(comm, NULL));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* What is behind a shorter message stays as it was. */
static int shorter(struct world_rank *me)
{
    static uint32_t x[LARGEST + 1];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int c = 0; c < N_COUNTS; c++) {
        struct coll_recv_status s = STATUS;

        if (me->rank == 1) {
            tags_fill(x, counts[c], 1, 0, c);
            WORLD_CHECK(me, !coll_send_tagged(x, counts[c], COLL_U32, 0, c,
                                              comm, NULL));
            continue;
        }
        memset(x, 0xab, sizeof(x));
        WORLD_CHECK(me, !coll_recv_tagged(x, LARGEST + 1, COLL_U32, 1, c, comm,
                                          NULL, &s));
        WORLD_CHECK(me,
                    s.count == counts[c] && tags_are(x, counts[c], 1, 0, c));
        WORLD_CHECK(me, x[counts[c]] == 0xabababab);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(one_rank_receives_from_any_other)
{
    static const int sizes[] = {1, 2, 3, 5, 9};

    run(sizes[_i / 2], many_to_one, _i % 2);
}
END_TEST

START_TEST(a_receive_takes_the_earliest_message_with_its_tag)
{
    run(2, by_tag, _i);
}
END_TEST

START_TEST(messages_with_and_without_tags_do_not_meet)
{
    run(2, two_streams, _i);
}
END_TEST

START_TEST(a_message_may_be_shorter_than_its_receive) { run(2, shorter, _i); }
END_TEST

/* ---- requests, groups, oneself --------------------------------------------- */

#define LARGE ((size_t)4 << 20) /* elements: 16 MiB */

/* Everybody sends to everybody at once, more than once by the same requests. */
static int all_ways(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_request *sends[4], *recvs[4];
    uint32_t *x[4], *y[4];

    WORLD_CHECK(me, comm && me->size <= 4);
    for (int r = 0; r < me->size; r++) {
        struct coll_args send, recv;

        x[r] = malloc(LARGE * sizeof(uint32_t));
        y[r] = malloc(LARGE * sizeof(uint32_t));
        WORLD_CHECK(me, x[r] && y[r]);
        send = tags_send(x[r], LARGE, r, me->rank);
        recv = tags_recv(y[r], LARGE, COLL_ANY_RANK, r, NULL);
        WORLD_CHECK(me, !coll_request_create(&send, comm, &sends[r]));
        WORLD_CHECK(me, !coll_request_create(&recv, comm, &recvs[r]));
    }
    for (int n = 0; n < 3; n++) {
        for (int r = 0; r < me->size; r++) {
            tags_fill(x[r], LARGE, me->rank, r, n);
            WORLD_CHECK(me, !coll_start(sends[r]));
        }
        for (int r = 0; r < me->size; r++)
            WORLD_CHECK(me, !coll_start(recvs[r]));
        for (int r = me->size - 1; r >= 0; r--) {
            WORLD_CHECK(me, !coll_wait(sends[r], 0));
            WORLD_CHECK(me, !coll_wait(recvs[r], 0));
            WORLD_CHECK(me, tags_are(y[r], LARGE, r, me->rank, n));
        }
    }
    for (int r = 0; r < me->size; r++) {
        WORLD_CHECK(me, !coll_request_destroy(sends[r]));
        WORLD_CHECK(me, !coll_request_destroy(recvs[r]));
        free(x[r]);
        free(y[r]);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

#define MOST 9 /* ranks */

/* A group of sends to all and receives from any, among collectives. */
static int group(struct world_rank *me)
{
    static uint32_t x[MOST][3000], y[MOST][3000];
    struct coll_recv_status s[MOST];
    struct coll_comm *comm = world_join(me);
    int one = 1, sum, p = me->size;

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 10; n++) {
        int seen = 0;

        WORLD_CHECK(me, !coll_group_start());
        for (int r = 0; r < p; r++) {
            s[r] = (struct coll_recv_status)STATUS;
            WORLD_CHECK(me,
                        !coll_recv_tagged(y[r], 3000, COLL_U32, COLL_ANY_RANK,
                                          n, comm, NULL, &s[r]));
        }
        WORLD_CHECK(
            me, !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL));
        for (int r = 0; r < p; r++) {
            size_t count = r % 2 ? 3000 : 10;

            tags_fill(x[r], count, me->rank, r, n);
            WORLD_CHECK(
                me, !coll_send_tagged(x[r], count, COLL_U32, r, n, comm, NULL));
        }
        WORLD_CHECK(me, !coll_group_end());
        WORLD_CHECK(me, sum == p);
        for (int r = 0; r < p; r++) {
            WORLD_CHECK(me, s[r].count == (me->rank % 2 ? 3000u : 10u));
            WORLD_CHECK(me,
                        tags_are(y[r], s[r].count, s[r].source, me->rank, n));
            seen |= 1 << s[r].source;
        }
        WORLD_CHECK(me, seen == (1 << p) - 1);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* Short messages to oneself are kept; long ones wait for their receive. */
static int self(struct world_rank *me)
{
    static uint32_t x[LARGEST], y[LARGEST];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 200; n++) {
        struct coll_recv_status s = STATUS;

        tags_fill(x, 100, me->rank, me->rank, n);
        WORLD_CHECK(
            me, !coll_send_tagged(x, 100, COLL_U32, me->rank, n, comm, NULL));
        WORLD_CHECK(me, !coll_recv_tagged(y, LARGEST, COLL_U32,
                                          n % 2 ? me->rank : COLL_ANY_RANK, n,
                                          comm, NULL, &s));
        WORLD_CHECK(me, s.source == me->rank && s.tag == n && s.count == 100);
        WORLD_CHECK(me, tags_are(y, 100, me->rank, me->rank, n));
    }
    for (int n = 0; n < 2 * N_COUNTS; n++) {
        struct coll_args args[] = {
            tags_send(x, count_of(n), me->rank, 9),
            tags_recv(y, LARGEST, me->rank, COLL_ANY_TAG, NULL)};
        struct coll_request *requests[2];

        tags_fill(x, count_of(n), me->rank, me->rank, n);
        for (int k = 0; k < 2; k++) {
            int at = n < N_COUNTS ? k : 1 - k;

            WORLD_CHECK(me,
                        !coll_request_create(&args[at], comm, &requests[k]));
            WORLD_CHECK(me, !coll_start(requests[k]));
        }
        for (int k = 0; k < 2; k++) {
            WORLD_CHECK(me, !coll_wait(requests[k], 0));
            WORLD_CHECK(me, !coll_request_destroy(requests[k]));
        }
        WORLD_CHECK(me, tags_are(y, count_of(n), me->rank, me->rank, n));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(long_messages_go_all_ways_at_once)
{
    run(1 + _i / 2, all_ways, _i % 2);
}
END_TEST

START_TEST(groups_send_to_all_and_receive_from_any)
{
    static const int sizes[] = {1, 2, 3, 5, MOST};

    run(sizes[_i / 2], group, _i % 2);
}
END_TEST

START_TEST(a_rank_can_send_to_itself) { run(1 + 2 * _i, self, 0); }
END_TEST

/* ---- bounds ---------------------------------------------------------------- */

#define MANY 2000
#define KIB 256 /* elements */

/* One rank sends much more than the other keeps. */
static int flood(struct world_rank *me)
{
    static uint32_t x[MANY][KIB], y[KIB];
    static struct coll_request *sends[MANY];
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int n = 0; n < MANY && me->rank == 1; n++) {
        struct coll_args args = tags_send(x[n], KIB, 0, n);

        tags_fill(x[n], KIB, 1, 0, n);
        WORLD_CHECK(me, !coll_request_create(&args, comm, &sends[n]));
        WORLD_CHECK(me, !coll_start(sends[n]));
    }
    if (me->rank == 0) { /* the last first: all others wait here or there */
        WORLD_CHECK(me, !coll_recv_tagged(y, KIB, COLL_U32, 1, MANY - 1, comm,
                                          NULL, NULL));
        WORLD_CHECK(me, tags_are(y, KIB, 1, 0, MANY - 1));
        WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats));
        WORLD_CHECK(me, stats.scratch >= COLL__TAG_WINDOW / 2);
        WORLD_CHECK(me, stats.scratch <= COLL__TAG_WINDOW);
        for (int n = 0; n < MANY - 1; n++) {
            WORLD_CHECK(me, !coll_recv_tagged(y, KIB, COLL_U32, 1, n, comm,
                                              NULL, NULL));
            WORLD_CHECK(me, tags_are(y, KIB, 1, 0, n));
        }
        WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats));
        WORLD_CHECK(me, !stats.scratch);
    }
    for (int n = 0; n < MANY && me->rank == 1; n++) {
        WORLD_CHECK(me, !coll_wait(sends[n], 0));
        WORLD_CHECK(me, !coll_request_destroy(sends[n]));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_rank_keeps_a_bounded_part_of_what_another_sends)
{
    run(2, flood, _i);
}
END_TEST

/* ---- moved by others ------------------------------------------------------- */

/* The library's thread moves them, or a call for another communicator does. */
static int moved(struct world_rank *me)
{
    static uint32_t x[LARGEST], y[LARGEST];
    struct coll_comm *comm = world_join(me), *other = world_join(me);
    int peer = 1 - me->rank;
    struct coll_args send = tags_send(x, LARGEST, peer, 1);
    struct coll_args recv = tags_recv(y, LARGEST, COLL_ANY_RANK, 1, NULL);
    struct coll_request *requests[2];

    WORLD_CHECK(me, comm && other);
    tags_fill(x, LARGEST, me->rank, peer, 0);
    send.background = recv.background = me->arg != NULL;
    WORLD_CHECK(me, !coll_request_create(&recv, comm, &requests[0]));
    WORLD_CHECK(me, !coll_request_create(&send, comm, &requests[1]));
    for (int k = 0; k < 2; k++)
        WORLD_CHECK(me, !coll_start(requests[k]));
    for (int k = 0; k < 2; k++)
        while (coll_test(requests[k]) == COLL_IN_PROGRESS)
            WORLD_CHECK(me, me->arg || !coll_comm_async_error(other));
    WORLD_CHECK(me, !coll_barrier(other, NULL));
    WORLD_CHECK(me, tags_are(y, LARGEST, peer, me->rank, 0));
    for (int k = 0; k < 2; k++)
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(other) == COLL_OK);
    return 0;
}

/* Rank 0's receive ends while it waits in a barrier of another communicator, which rank 1
 * calls once its long send is over. */
static int moved_in_barrier(struct world_rank *me)
{
    static uint32_t x[LARGEST];
    struct coll_comm *comm = world_join(me), *other = world_join(me);
    struct coll_args recv = tags_recv(x, LARGEST, 1, COLL_ANY_TAG, NULL);
    struct coll_request *request;

    WORLD_CHECK(me, comm && other);
    if (me->rank) {
        tags_fill(x, LARGEST, 1, 0, 0);
        WORLD_CHECK(me,
                    !coll_send_tagged(x, LARGEST, COLL_U32, 0, 1, comm, NULL));
        WORLD_CHECK(me, !coll_barrier(other, NULL));
    } else {
        WORLD_CHECK(me, !coll_request_create(&recv, comm, &request));
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me, !coll_barrier(other, NULL));
        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, tags_are(x, LARGEST, 1, 0, 0));
        WORLD_CHECK(me, !coll_request_destroy(request));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(other) == COLL_OK);
    return 0;
}

START_TEST(the_librarys_thread_moves_them)
{
    static int yes;

    setenv("COLL_TRANSPORTS", world_net(_i ? "self," : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(2, moved, &yes, DEADLINE), 0);
}
END_TEST

START_TEST(tests_move_them) { run(2, moved, _i); }
END_TEST

START_TEST(a_wait_for_another_communicator_moves_them)
{
    run(2, moved_in_barrier, _i);
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_threads(3, all_ways, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tags");
    TCase *c = suite_case(suite, "tags", 2 * DEADLINE);

    patient_timeout(30);
    tcase_add_loop_test(c, one_rank_receives_from_any_other, 0, 10);
    tcase_add_loop_test(c, a_receive_takes_the_earliest_message_with_its_tag, 0,
                        2);
    tcase_add_loop_test(c, messages_with_and_without_tags_do_not_meet, 0, 2);
    tcase_add_loop_test(c, a_message_may_be_shorter_than_its_receive, 0, 2);
    tcase_add_loop_test(c, long_messages_go_all_ways_at_once, 0, 6);
    tcase_add_loop_test(c, groups_send_to_all_and_receive_from_any, 0, 10);
    tcase_add_loop_test(c, a_rank_can_send_to_itself, 0, 2);
    tcase_add_loop_test(c, a_rank_keeps_a_bounded_part_of_what_another_sends, 0,
                        2);
    tcase_add_loop_test(c, the_librarys_thread_moves_them, 0, 2);
    tcase_add_loop_test(c, tests_move_them, 0, 2);
    tcase_add_loop_test(c, a_wait_for_another_communicator_moves_them, 0, 2);
    tcase_add_loop_test(c, ranks_may_be_threads, 0, 2);
    return suite_run(suite);
}
