/* SPDX-License-Identifier: BSD-3-Clause */
/* test_notice.c - an event loop is told of operations that end, and asks which. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60
#define N_REQUESTS 5
#define COUNT 3000

static struct coll_args sum_of(int *at, size_t count)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_ALLREDUCE,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .in = at,
                              .out = at,
                              .count = count,
                              .background = 1,
                              .notify = 1};
}

/* Wait for a notice; the number of operations that have ended, 0 when none came. */
static uint64_t notices(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t n = 0;

    if (poll(&p, 1, (int)(1000 * patient(20))) != 1)
        return 0;
    return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static int is_silent(int fd)
{
    uint64_t n;

    return read(fd, &n, sizeof(n)) < 0 && errno == EAGAIN;
}

/* As a loop does: sleep, ask, and start again what has ended. */
static int loop(struct world_rank *me, struct coll_comm *comm)
{
    static int numbers[N_REQUESTS][COUNT];
    struct coll_request *requests[N_REQUESTS];
    int fd, same, n_ended = 0, n_told = 0;

    WORLD_CHECK(me, !coll_completion_fd(&fd));
    WORLD_CHECK(me, !coll_completion_fd(&same) && same == fd && is_silent(fd));
    for (int k = 0; k < N_REQUESTS; k++) {
        struct coll_args args = sum_of(numbers[k], COUNT / (size_t)(k + 1));

        for (int i = 0; i < COUNT; i++)
            numbers[k][i] = me->rank + i;
        WORLD_CHECK(me, !coll_request_create(&args, comm, &requests[k]));
        WORLD_CHECK(me, !coll_request_status(requests[k]));
        WORLD_CHECK(me, !coll_start(requests[k]));
    }
    while (n_ended < N_REQUESTS) {
        uint64_t n = notices(fd);

        WORLD_CHECK(me, n > 0);
        n_told += (int)n;
        n_ended = 0;
        for (int k = 0; k < N_REQUESTS; k++)
            n_ended += coll_request_status(requests[k]) == COLL_OK;
        WORLD_CHECK(me, n_ended >= n_told);
    }
    for (int k = 0; k < N_REQUESTS; k++) {
        for (int i = 0; i < COUNT / (k + 1); i++)
            WORLD_CHECK(me, numbers[k][i] ==
                                me->size * (me->size - 1) / 2 + me->size * i);
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
    }
    WORLD_CHECK(me, n_told == N_REQUESTS || notices(fd) > 0);
    return 0;
}

START_TEST(a_loop_is_told_of_each_operation)
{
    static const int sizes[] = {1, 2, 3, 5};

    ck_assert_int_eq(world_fork_joined(sizes[_i], loop, NULL, DEADLINE), 0);
}
END_TEST

/* Nothing but coll_progress() moves what was started. */
static int progress(struct world_rank *me, struct coll_comm *comm)
{
    int number = me->rank, fd, count = 1;
    struct coll_args args = sum_of(&number, 1), other = sum_of(&count, 1);
    struct coll_request *request;
    double until;

    args.background = 0;
    WORLD_CHECK(me, !coll_completion_fd(&fd));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, coll_progress() == COLL_OK);
    for (int round = 1; round <= 3; round++) {
        number = me->rank;
        WORLD_CHECK(me, !coll_start(request));
        for (until = patient(20);
             coll_request_status(request) == COLL_IN_PROGRESS && until > 0;
             until -= 1e-4) {
            coll_progress();
            usleep(100);
        }
        WORLD_CHECK(me, number == me->size * (me->size - 1) / 2);
        WORLD_CHECK(me, notices(fd) == 1);
    }
    WORLD_CHECK(me, !coll_request_destroy(request));

    /* the same shape once more, by one who asks for no notice */
    other.notify = other.background = 0;
    WORLD_CHECK(me, !coll_request_create(&other, comm, &request));
    WORLD_CHECK(me, !coll_start(request) && !coll_wait(request, 0));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(
        me, !coll_allreduce(&count, &count, 1, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, coll_progress() == COLL_OK && is_silent(fd));
    return 0;
}

START_TEST(a_caller_moves_everything)
{
    ck_assert_int_eq(world_fork_joined(3, progress, NULL, DEADLINE), 0);
}
END_TEST

/* The last rank starts nothing and ends the communicator: the others are told. */
static int abort_it(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int number = 1, fd;
    struct coll_args args = sum_of(&number, 1);
    struct coll_request *request;

    WORLD_CHECK(me, comm && !coll_completion_fd(&fd));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    if (me->rank == me->size - 1) {
        world_await_through(me, me->size - 1, patient(20));
        WORLD_CHECK(me, !coll_comm_abort(comm, "enough"));
    } else {
        WORLD_CHECK(me, !coll_start(request));
        world_through(me);
        WORLD_CHECK(me, notices(fd) == 1);
        WORLD_CHECK(me, coll_request_status(request) == COLL_ERR_ABORTED);
        WORLD_CHECK(me, strstr(coll_last_error(), "enough"));
        WORLD_CHECK(me, coll_test(request) == COLL_ERR_ABORTED);
    }
    coll_request_destroy(request);
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(a_failure_is_an_end)
{
    ck_assert_int_eq(world_fork(3, abort_it, NULL, DEADLINE), 0);
}
END_TEST

/* A child's operations are told to the child. */
static int fork_it(struct world_rank *me, struct coll_comm *comm)
{
    int fd, status;
    pid_t child;

    (void)comm;
    WORLD_CHECK(me, !coll_completion_fd(&fd));
    child = fork();
    if (!child) {
        int own, is_closed = fcntl(fd, F_GETFD) < 0;

        _exit(!is_closed || coll_completion_fd(&own) || !is_silent(own));
    }
    WORLD_CHECK(me, waitpid(child, &status, 0) == child && !status);
    WORLD_CHECK(me, is_silent(fd));
    return loop(me, comm);
}

START_TEST(a_child_has_its_own)
{
    ck_assert_int_eq(world_fork_joined(2, fork_it, NULL, DEADLINE), 0);
}
END_TEST

static int ask_wrongly(struct world_rank *me, struct coll_comm *comm)
{
    int number = 0;
    struct coll_args args = sum_of(&number, 1);
    struct coll_request *request;

    args.notify = 2;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "notify must be 0 or 1");
    EXPECT(me, coll_completion_fd(NULL), COLL_ERR_INVALID, "fd is NULL");
    EXPECT(me, coll_request_status(NULL), COLL_ERR_INVALID, "request is NULL");
    return 0;
}

START_TEST(wrong_calls_are_refused)
{
    ck_assert_int_eq(world_fork_joined(1, ask_wrongly, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notice");
    TCase *c = suite_case(suite, "notice", 2 * DEADLINE);

    tcase_add_loop_test(c, a_loop_is_told_of_each_operation, 0, 4);
    tcase_add_test(c, a_caller_moves_everything);
    tcase_add_test(c, a_failure_is_an_end);
    tcase_add_test(c, a_child_has_its_own);
    tcase_add_test(c, wrong_calls_are_refused);
    return suite_run(suite);
}
