/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tags_wrong.c - what goes wrong with messages with tags is told in words: too long,
 * another type, never received, nobody sends, a rank that dies or aborts, bad arguments. */
#include "tests/tags/tags.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define STATUS                                                                 \
    {                                                                          \
        .size = sizeof(struct coll_recv_status)                                \
    }

/* ---- too long -------------------------------------------------------------- */

/* The receiver alone is told; the message is gone, and the next one comes. */
static int too_long(struct world_rank *me)
{
    static const size_t lengths[] = {11, 2000, 50000};
    static uint32_t x[50000], y[10];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 6; n++) {
        size_t count = lengths[n % 3];
        struct coll_recv_status s = STATUS;
        char words[80];

        if (n == 3) /* from here on, messages wait for receives */
            WORLD_CHECK(me, !coll_barrier(comm, NULL));
        if (me->rank == 1) {
            WORLD_CHECK(
                me, !coll_send_tagged(x, count, COLL_U32, 0, n, comm, NULL));
            x[0]++;
            WORLD_CHECK(me,
                        !coll_send_tagged(x, 10, COLL_U32, 0, n, comm, NULL));
            continue;
        }
        y[0] = 77;
        snprintf(words, sizeof(words), "has %zu elements (%zu bytes)", count,
                 4 * count);
        EXPECT(
            me,
            coll_recv_tagged(y, 10, COLL_U32, COLL_ANY_RANK, n, comm, NULL, &s),
            COLL_ERR_TRUNCATED, words);
        WORLD_CHECK(me, strstr(coll_last_error(), "takes 10 (40 bytes)"));
        WORLD_CHECK(me, s.source == 1 && s.tag == n && s.count == count);
        WORLD_CHECK(me, y[0] == 77 && !coll_comm_async_error(comm));
        WORLD_CHECK(me,
                    !coll_recv_tagged(y, 10, COLL_U32, 1, n, comm, NULL, &s));
        WORLD_CHECK(me, s.count == 10 && y[0] == (uint32_t)n + 1);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* The same in a request and in a group, of a rank to itself too. */
static int too_long_later(struct world_rank *me)
{
    uint32_t x[20] = {1}, y[10];
    struct coll_comm *comm = world_join(me);
    struct coll_args recv = tags_recv(y, 10, me->rank, 1, NULL);
    struct coll_request *request;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&recv, comm, &request));
    for (int n = 0; n < 4; n++) {
        size_t count = n % 2 ? 10 : 20;

        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(
            me, !coll_send_tagged(x, count, COLL_U32, me->rank, 1, comm, NULL));
        if (n % 2)
            WORLD_CHECK(me, !coll_wait(request, 0));
        else
            EXPECT(me, coll_test(request), COLL_ERR_TRUNCATED,
                   "has 20 elements");
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me,
                !coll_send_tagged(x, 20, COLL_U32, me->rank, 2, comm, NULL));
    WORLD_CHECK(me, !coll_recv_tagged(y, 9, COLL_U32, COLL_ANY_RANK, 2, comm,
                                      NULL, NULL));
    EXPECT(me, coll_group_end(), COLL_ERR_TRUNCATED, "takes 9 (36 bytes)");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_message_that_is_too_long_is_told_at_the_receiver)
{
    run(2, too_long, _i);
}
END_TEST

START_TEST(so_is_one_of_a_request_or_a_group)
{
    run(1 + _i, too_long_later, 0);
}
END_TEST

/* ---- ranks that disagree --------------------------------------------------- */

static int other_type(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    float x[8] = {0};
    int rc = COLL_OK;

    WORLD_CHECK(me, comm);
    if (me->rank == 1)
        rc = coll_send_tagged(x, 8, COLL_F32, 0, 5, comm, NULL);
    else if (me->rank == 0)
        rc = coll_recv_tagged(x, 8, COLL_U32, COLL_ANY_RANK, COLL_ANY_TAG, comm,
                              NULL, NULL);
    while (rc == COLL_OK)
        rc = coll_comm_async_error(comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH,
           "rank 1 called send_tagged #1 to 0, tag 5 (8 f32) where rank 0 "
           "called recv_tagged #1 from any rank, any tag (8 u32)");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* Nobody receives it: a short one, which the receiver has seen or not. */
static int never_received(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[8] = {0};
    int rc;

    WORLD_CHECK(me, comm);
    if (me->rank == 1) {
        WORLD_CHECK(me, !coll_send_tagged(x, 8, COLL_U32, 0, 5, comm, NULL));
        WORLD_CHECK(me, !coll_send_tagged(x, 1, COLL_U32, 0, 6, comm, NULL));
    } else if (me->rank == 0) {
        WORLD_CHECK(me,
                    !coll_recv_tagged(x, 1, COLL_U32, 1, 6, comm, NULL, NULL));
    }
    rc = coll_comm_destroy(comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH,
           me->rank ? "they sent 2 messages and received 1"
                    : "rank 1 sent rank 0 a message with tag 5 (8 u32) that "
                      "was never received");
    return 0;
}

/* A long one waits at its sender, and the other rank leaves. */
static int left_alone(struct world_rank *me)
{
    static uint32_t x[100000];
    struct coll_comm *comm = world_join(me);
    int rc;

    WORLD_CHECK(me, comm);
    if (me->rank == 1) {
        EXPECT(me, coll_send_tagged(x, 100000, COLL_U32, 0, 5, comm, NULL),
               COLL_ERR_MISMATCH, "rank 0 called coll_comm_destroy where");
        WORLD_CHECK(me,
                    strstr(coll_last_error(), "send_tagged #1 to 0, tag 5"));
        rc = coll_comm_destroy(comm);
    } else {
        rc = coll_comm_destroy(comm);
    }
    WORLD_CHECK(me, rc == COLL_ERR_MISMATCH);
    return 0;
}

/* Rank 0 waits for a message of rank 2, which waits in a collective for rank 0. */
static int recv_for_barrier(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint32_t x[4];
    int rc;

    WORLD_CHECK(me, comm);
    rc = me->rank ? coll_barrier(comm, NULL)
                  : coll_recv_tagged(x, 4, COLL_U32, 2, 1, comm, NULL, NULL);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "rank 2 called barrier #1");
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "rank 0 called recv_tagged #1 from 2, tag 1"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(another_type_is_told_to_both) { run(3, other_type, _i); }
END_TEST

START_TEST(a_message_that_was_never_received_is_told)
{
    run(2 + _i / 2, never_received, _i % 2);
}
END_TEST

START_TEST(a_rank_that_leaves_its_sender_alone_is_told)
{
    run(2, left_alone, _i);
}
END_TEST

START_TEST(a_receive_whose_sender_waits_in_a_collective_is_told)
{
    run(5, recv_for_barrier, _i);
}
END_TEST

/* ---- nobody comes ---------------------------------------------------------- */

static int nobody_sends(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int is_any = me->arg != NULL;
    uint32_t x[4];

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    world_hurry(comm, 1);
    if (me->rank == 0) {
        EXPECT(me,
               coll_recv_tagged(x, 4, COLL_U32, is_any ? COLL_ANY_RANK : 1, 3,
                                comm, NULL, NULL),
               COLL_ERR_TIMEOUT,
               is_any ? "recv_tagged #1 from any rank, tag 3 (4 u32) did not "
                        "end within 1 s on rank 0; not arrived: rank 1, 2"
                      : "recv_tagged #1 from 1, tag 3 (4 u32) did not end "
                        "within 1 s on rank 0; rank 1 is after barrier #1");
    } else {
        EXPECT(me, world_await_failure(comm, 20), COLL_ERR_TIMEOUT,
               "recv_tagged #1");
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(a_receive_has_a_deadline)
{
    static int yes;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(
        world_fork(3, nobody_sends, _i / 2 ? &yes : NULL, DEADLINE), 0);
}
END_TEST

/* Rank 2 dies, or aborts, while the others wait: for it, for anybody, to send. */
static int waits_for_it(struct world_rank *me, struct coll_comm *comm)
{
    static uint32_t x[100000];

    world_through(me);
    return me->rank == 0 ? coll_recv_tagged(x, 4, COLL_U32, COLL_ANY_RANK,
                                            COLL_ANY_TAG, comm, NULL, NULL)
           : me->rank == 1
               ? coll_send_tagged(x, 100000, COLL_U32, 2, 3, comm, NULL)
               : coll_recv_tagged(x, 4, COLL_U32, 2, 7, comm, NULL, NULL);
}

static int one_dies(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 2) {
        world_await_through(me, 2, patient(20));
        _exit(0);
    }
    EXPECT(me, waits_for_it(me, comm), COLL_ERR_PEER, "rank 2");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

static int one_aborts(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 2) {
        world_await_through(me, 2, patient(20));
        WORLD_CHECK(me, !coll_comm_abort(comm, "enough"));
    } else {
        EXPECT(me, waits_for_it(me, comm), COLL_ERR_ABORTED, "enough");
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_ABORTED);
    return 0;
}

/* A request that runs when the communicator fails ends, and can be destroyed. */
static int aborted_requests(struct world_rank *me)
{
    static uint32_t x[100000], y[100000];
    struct coll_comm *comm = world_join(me);
    struct coll_args args[] = {
        tags_recv(y, 1000, COLL_ANY_RANK, COLL_ANY_TAG, NULL),
        tags_send(x, 100000, 1 - me->rank, 4),
        tags_recv(y, 10, me->rank, 1, NULL)};
    struct coll_request *requests[3];

    WORLD_CHECK(me, comm);
    for (int k = 0; k < 3; k++) {
        WORLD_CHECK(me, !coll_request_create(&args[k], comm, &requests[k]));
        if (k != 1 || me->rank)
            WORLD_CHECK(me, !coll_start(requests[k]));
    }
    EXPECT(me, coll_request_destroy(requests[2]), COLL_ERR_INVALID,
           "still runs");
    world_meet(me);
    WORLD_CHECK(me, !coll_comm_abort(comm, "enough"));
    EXPECT(me, coll_wait(requests[2], 0), COLL_ERR_ABORTED, "enough");
    EXPECT(me, coll_start(requests[2]), COLL_ERR_ABORTED, "enough");
    for (int k = 0; k < 3; k++)
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_ABORTED);
    return 0;
}

START_TEST(a_rank_that_dies_ends_the_wait)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(4, one_dies, NULL, DEADLINE), 0);
}
END_TEST

START_TEST(an_abort_ends_the_wait) { run(4, one_aborts, _i); }
END_TEST

START_TEST(an_abort_ends_requests) { run(2, aborted_requests, _i); }
END_TEST

/* ---- arguments ------------------------------------------------------------- */

static int arguments(struct world_rank *me)
{
    static uint32_t x[100000];
    struct coll_comm *comm = world_join(me);
    struct coll_recv_status s = {0};
    struct coll_args args = tags_send(x, 1, 0, 0);
    struct coll_request *request;
    int stream;

    WORLD_CHECK(me, comm);
#define SEND(count, type, peer, tag, stream)                                   \
    coll_send_tagged(x, count, type, peer, tag, comm, stream)
#define RECV(count, type, peer, tag, status)                                   \
    coll_recv_tagged(x, count, type, peer, tag, comm, NULL, status)
    EXPECT(me, SEND(1, COLL_U32, me->size, 0, NULL), COLL_ERR_INVALID,
           "send_tagged: peer 2 is not within 0 to 1");
    EXPECT(me, SEND(1, COLL_U32, COLL_ANY_RANK, 0, NULL), COLL_ERR_INVALID,
           "peer -1 is not within 0 to 1");
    EXPECT(me, SEND(1, COLL_U32, 0, -1, NULL), COLL_ERR_INVALID,
           "send_tagged: tag -1 is negative");
    EXPECT(me, RECV(1, COLL_U32, -2, 0, NULL), COLL_ERR_INVALID,
           "peer -2 is not within 0 to 1, nor COLL_ANY_RANK");
    EXPECT(me, RECV(1, COLL_U32, 0, -2, NULL), COLL_ERR_INVALID,
           "tag -2 is negative, and not COLL_ANY_TAG");
    EXPECT(me, RECV(1, COLL_U32, 0, 0, &s), COLL_ERR_INVALID,
           "set status->size to sizeof(struct coll_recv_status)");
    EXPECT(me, SEND(1, COLL_N_TYPES, 0, 0, NULL), COLL_ERR_INVALID,
           "is no element type");
    EXPECT(me, SEND(SIZE_MAX / 2, COLL_U32, 0, 0, NULL), COLL_ERR_INVALID,
           "count is larger than the address space");
    EXPECT(me, coll_send_tagged(NULL, 1, COLL_U32, 0, 0, comm, NULL),
           COLL_ERR_INVALID, "in is NULL");
    EXPECT(me, coll_recv_tagged(NULL, 1, COLL_U32, 0, 0, comm, NULL, NULL),
           COLL_ERR_INVALID, "out is NULL");
    EXPECT(me, coll_send_tagged(x, 1, COLL_U32, 0, 0, NULL, NULL),
           COLL_ERR_INVALID, "comm is NULL");
    EXPECT(me, SEND(1, COLL_U32, 0, 0, &stream), COLL_ERR_UNSUPPORTED,
           "are for host memory, without a stream");
    EXPECT(me, RECV(1, COLL_U32, me->rank, 0, NULL), COLL_ERR_INVALID,
           "would wait for itself for ever");
    EXPECT(me, SEND(100000, COLL_U32, me->rank, 0, NULL), COLL_ERR_INVALID,
           "would wait for itself for ever");
    args.algo = "direct";
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "there are no algorithms");
    WORLD_CHECK(me, !coll_group_start());
    EXPECT(me, SEND(1, COLL_U32, 0, -5, NULL), COLL_ERR_INVALID, "tag -5");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "tag -5");
    WORLD_CHECK(me, !coll_comm_async_error(comm));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(wrong_arguments_are_told) { run(2, arguments, 0); }
END_TEST

/* ---- fork ------------------------------------------------------------------ */

/* A child frees what the parent keeps, and nobody notices. */
static int forked(struct world_rank *me)
{
    uint32_t x[10] = {0}, y[10];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int tag = 0; tag < 2; tag++)
        WORLD_CHECK(me, !coll_send_tagged(x, 10, COLL_U32, 1 - me->rank, tag,
                                          comm, NULL));
    WORLD_CHECK(me, !coll_recv_tagged(y, 10, COLL_U32, COLL_ANY_RANK, 1, comm,
                                      NULL, NULL));
    if (!fork()) {
        int rc = coll_send_tagged(x, 10, COLL_U32, 0, 0, comm, NULL);

        _exit(rc != COLL_ERR_INVALID || coll_comm_destroy(comm));
    }
    WORLD_CHECK(me, !coll_recv_tagged(y, 10, COLL_U32, COLL_ANY_RANK, 0, comm,
                                      NULL, NULL));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_child_of_fork_frees_its_copy) { run(2, forked, _i); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("tags_wrong");
    TCase *c = suite_case(suite, "tags_wrong", 2 * DEADLINE);

    patient_timeout(30);
    tcase_add_loop_test(c, a_message_that_is_too_long_is_told_at_the_receiver,
                        0, 2);
    tcase_add_loop_test(c, so_is_one_of_a_request_or_a_group, 0, 2);
    tcase_add_loop_test(c, another_type_is_told_to_both, 0, 2);
    tcase_add_loop_test(c, a_message_that_was_never_received_is_told, 0, 4);
    tcase_add_loop_test(c, a_rank_that_leaves_its_sender_alone_is_told, 0, 2);
    tcase_add_loop_test(c, a_receive_whose_sender_waits_in_a_collective_is_told,
                        0, 2);
    tcase_add_loop_test(c, a_receive_has_a_deadline, 0, 4);
    tcase_add_loop_test(c, a_rank_that_dies_ends_the_wait, 0, 2);
    tcase_add_loop_test(c, an_abort_ends_the_wait, 0, 2);
    tcase_add_loop_test(c, an_abort_ends_requests, 0, 2);
    tcase_add_test(c, wrong_arguments_are_told);
    tcase_add_loop_test(c, a_child_of_fork_frees_its_copy, 0, 2);
    return suite_run(suite);
}
