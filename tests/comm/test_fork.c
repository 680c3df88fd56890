/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fork.c - children made by fork(): they may free what they inherited, and
 * whatever they do, their parent's operations and its peers' go on. */
#include "tests/comm/fork_child.h"
#include "tests/support/suite.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define NO_THREADS_AFTER_FORK 1
#else
#define NO_THREADS_AFTER_FORK 0
#endif

static struct coll_args sum_of(int count)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_ALLREDUCE,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .in = in,
                              .out = out,
                              .count = (size_t)count};
}

/* ---- a child that tries everything ----------------------------------------- */

#define REFUSED(call)                                                          \
    do {                                                                       \
        int got = (call);                                                      \
                                                                               \
        if (got != COLL_ERR_INVALID || !strstr(coll_last_error(), "fork()")) { \
            fprintf(stderr, "child, line %d: %s is %d (%s)\n", __LINE__,       \
                    #call, got, coll_last_error());                            \
            return 1;                                                          \
        }                                                                      \
    } while (0)

static int operations_are_refused(struct coll_comm *comm)
{
    size_t counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int x[8] = {1000}, y[8];

    REFUSED(coll_allreduce(x, y, 1, COLL_I32, COLL_SUM, comm, NULL));
    REFUSED(coll_broadcast(x, y, 1, COLL_I32, 0, comm, NULL));
    REFUSED(coll_reduce(x, y, 1, COLL_I32, COLL_SUM, 0, comm, NULL));
    REFUSED(coll_allgather(x, y, 1, COLL_I32, comm, NULL));
    REFUSED(coll_allgatherv(x, y, counts, NULL, COLL_I32, comm, NULL));
    REFUSED(coll_reduce_scatter(x, y, 1, COLL_I32, COLL_SUM, comm, NULL));
    REFUSED(coll_alltoall(x, y, 1, COLL_I32, comm, NULL));
    REFUSED(coll_send(x, 1, COLL_I32, 1, comm, NULL));
    REFUSED(coll_recv(y, 1, COLL_I32, 1, comm, NULL));
    REFUSED(coll_barrier(comm, NULL));
    coll_group_start();
    REFUSED(coll_allreduce(x, y, 1, COLL_I32, COLL_SUM, comm, NULL));
    REFUSED(coll_group_end());
    return 0;
}

static int questions_are_refused(struct coll_comm *comm)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct coll_args args = sum_of(1);
    struct coll_request *request;
    struct coll_comm *other;

    REFUSED(coll_request_create(&args, comm, &request));
    REFUSED(coll_plan_query(&args, comm, &info));
    REFUSED(coll_plan_candidate(&args, comm, 0, &info));
    REFUSED(coll_comm_mem_stats(comm, &stats));
    REFUSED(coll_comm_split(comm, 0, 0, &other));
    REFUSED(coll_comm_dup(comm, &other));
    REFUSED(coll_comm_async_error(comm));
    REFUSED(coll_comm_abort(comm, "the child says so"));
    return 0;
}

static int requests_are_refused(struct coll_request *request)
{
    REFUSED(coll_start(request));
    REFUSED(coll_test(request));
    REFUSED(coll_wait(request, 1));
    return 0;
}

/* The communicator still says what it is, and everything can be freed. */
static int try_everything(struct world_rank *me, struct coll_comm *comm,
                          struct coll_request *request, int frees_request)
{
    if (coll_comm_rank(comm) != me->rank || coll_comm_size(comm) != me->size)
        return 1;
    if (operations_are_refused(comm) || questions_are_refused(comm) ||
        requests_are_refused(request))
        return 1;
    if (frees_request && coll_request_destroy(request))
        return 1;
    return coll_comm_destroy(comm) != COLL_OK;
}

/* arg: how the child ends, 0 by _exit(), 1 by exit(). */
static int fork_between(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args args = sum_of(COUNT);
    struct coll_request *request;
    int by_exit = *(int *)me->arg;

    WORLD_CHECK(me, comm && !sums_well(me, comm));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    for (int i = 0; i < 3; i++) {
        pid_t pid = me->rank == i % 2 ? fork_child() : -1;

        if (!pid && by_exit)
            exit(try_everything(me, comm, request, i == 1));
        if (!pid)
            _exit(try_everything(me, comm, request, i == 1));
        WORLD_CHECK(me, me->rank != i % 2 || child_ends_well(pid));
        WORLD_CHECK(me, !sums_well(me, comm));
    }
    fill(1);
    WORLD_CHECK(me, !coll_start(request) && !coll_wait(request, 0));
    WORLD_CHECK(me, is_filled(me->size));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* _i: transports, and the ways to end. */
START_TEST(a_child_may_free_and_nothing_else)
{
    int by_exit = _i / 2;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(2, fork_between, &by_exit, DEADLINE), 0);
    ck_assert_int_eq(world_fork(3, fork_between, &by_exit, DEADLINE), 0);
}
END_TEST

/* ---- amid operations -------------------------------------------------------- */

/* Rank 0 forks while its request is under way; the others start theirs only when
 * the child has ended. */
static int fork_amid_request(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args args = sum_of(COUNT);
    struct coll_request *request;

    WORLD_CHECK(me, comm && !sums_well(me, comm));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    fill(1);
    if (!me->rank) {
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me, coll_test(request) == COLL_IN_PROGRESS);
        CHILD_CHECK(me, (fill(0x55), /* its own copy */
                         try_everything(me, comm, request, 1)));
    }
    world_meet(me);
    if (me->rank)
        WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !coll_wait(request, 0));
    WORLD_CHECK(me, is_filled(me->size));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !sums_well(me, comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_child_leaves_requests_in_flight_alone)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_amid_request, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork(3, fork_amid_request, NULL, DEADLINE), 0);
}
END_TEST

struct busy {
    struct world_rank *me;
    struct coll_comm *comm;
    int result;
};

static void *sum_often(void *arg)
{
    struct busy *busy = arg;

    for (int i = 0; i < 30 && !busy->result; i++)
        busy->result = sums_well(busy->me, busy->comm);
    return NULL;
}

/* One thread is in operations while another one forks. */
static int fork_beside_operations(struct world_rank *me)
{
    struct busy busy = {.me = me, .comm = world_join(me)};
    pthread_t thread;

    WORLD_CHECK(me, busy.comm && !sums_well(me, busy.comm));
    WORLD_CHECK(me, !pthread_create(&thread, NULL, sum_often, &busy));
    for (int i = 0; i < 5 && me->rank != 1; i++)
        CHILD_CHECK(me, operations_are_refused(busy.comm) ||
                            coll_comm_destroy(busy.comm));
    pthread_join(thread, NULL);
    WORLD_CHECK(me, !busy.result);
    WORLD_CHECK(me, !coll_comm_destroy(busy.comm));
    return 0;
}

START_TEST(a_thread_may_fork_beside_operations)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, fork_beside_operations, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 0 waits for the others to leave while another thread of it forks. */
static void *destroy_it(void *arg)
{
    struct busy *busy = arg;

    busy->result = coll_comm_destroy(busy->comm);
    return NULL;
}

static int fork_beside_destroy(struct world_rank *me)
{
    struct busy busy = {.me = me, .comm = world_join(me)};
    struct coll_comm *second;
    pthread_t thread;

    WORLD_CHECK(me, busy.comm && !coll_comm_dup(busy.comm, &second));
    if (!me->rank) {
        WORLD_CHECK(me, !pthread_create(&thread, NULL, destroy_it, &busy));
        usleep(50000); /* so that it waits, most likely */
        CHILD_CHECK(me, coll_comm_destroy(second));
    }
    world_meet(me);
    if (me->rank)
        destroy_it(&busy);
    else
        pthread_join(thread, NULL);
    WORLD_CHECK(me, !busy.result);
    WORLD_CHECK(me, !sums_well(me, second));
    WORLD_CHECK(me, !coll_comm_destroy(second));
    return 0;
}

/* Which starts a thread.  A child whose parent was just starting one hangs there under
 * AddressSanitizer: nobody sees to the locks of gcc 12's at a fork. */
static int has_own_communicator(void)
{
    struct coll_unique_id id;
    struct coll_comm *own;

    return NO_THREADS_AFTER_FORK || (!coll_get_unique_id(&id) &&
                                     !coll_comm_create(&own, 1, &id, 0, NULL) &&
                                     !coll_comm_destroy(own));
}

/* Of communicators that leave, while a thread takes leave of the other rank: the child
 * has neither, and may have communicators of its own. */
static int fork_beside_leaving(struct world_rank *me)
{
    struct coll_comm *all, *other;

    for (int i = 0; i < 10; i++) {
        all = world_join(me);
        WORLD_CHECK(me, all && !coll_comm_dup(all, &other));
        if (me->rank)
            usleep(15000 + 1000 * (useconds_t)i);
        WORLD_CHECK(me, !coll_comm_destroy(other));
        if (!me->rank) {
            pid_t pid = fork_child();

            if (!pid) /* not by exit(): LeakSanitizer would wait for the thread */
                _exit(coll_comm_destroy(all) || !has_own_communicator());
            WORLD_CHECK(me, child_ends_well(pid));
        }
        WORLD_CHECK(me, !coll_comm_destroy(all));
    }
    return 0;
}

START_TEST(a_child_has_none_of_those_that_leave)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_beside_leaving, NULL, DEADLINE), 0);
}
END_TEST

START_TEST(a_thread_may_fork_beside_control_traffic)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_beside_destroy, NULL, DEADLINE), 0);
}
END_TEST

static int fork_amid_group(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int one = 1, sum = 0;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me,
                !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL));
    if (!me->rank) {
        CHILD_CHECK(me, coll_group_end() != COLL_ERR_INVALID ||
                            coll_comm_destroy(comm));
        CHILD_CHECK(me, coll_comm_destroy(comm) != COLL_ERR_INVALID);
    }
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, sum == me->size);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_group_that_was_begun_is_the_parents)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_amid_group, NULL, DEADLINE), 0);
}
END_TEST

/* ---- memory of coll_mem_alloc() ------------------------------------------------ */

/* A child's free is its own; what it writes, its parent has, too. */
static int fork_with_memory(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    void *memory;
    int *x;

    WORLD_CHECK(me, comm && !coll_mem_alloc(&memory, sizeof(in)));
    x = memory;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    CHILD_CHECK(me,
                (x[0] = 7, coll_mem_free(memory)) || coll_comm_destroy(comm));
    WORLD_CHECK(me, x[0] == 7 && x[1] == 1);
    x[0] = 1;
    for (int i = 0; i < 3; i++) {
        WORLD_CHECK(
            me, !coll_allreduce(x, out, COUNT, COLL_I32, COLL_SUM, comm, NULL));
        WORLD_CHECK(me, is_filled(me->size));
    }
    WORLD_CHECK(me, !coll_mem_free(memory));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(memory_outlives_a_child_that_frees_it)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_with_memory, NULL, DEADLINE), 0);
}
END_TEST

/* ---- the reactor ------------------------------------------------------------ */

/* Two sources, of which the one that is dropped removes the other. */
static struct coll__source first, second;
static atomic_int n_ready;

static void be_ready(struct coll__source *source, uint32_t events)
{
    char byte;

    (void)events;
    if (read(source->fd, &byte, 1) == 1)
        atomic_fetch_add(&n_ready, 1);
}

static void be_dropped(struct coll__source *source)
{
    if (source == &first)
        coll__reactor_remove(&second);
}

static struct coll__source source_of(int fd)
{
    return (struct coll__source){
        .fd = fd, .events = EPOLLIN, .ready = be_ready, .dropped = be_dropped};
}

START_TEST(what_a_child_drops_its_parent_still_hears)
{
    double end = coll__now() + DEADLINE;
    int ends[2][2], status;
    pid_t pid;

    ck_assert_int_eq(coll__reactor_get(), COLL_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pipe(ends[i]), 0);
    first = source_of(ends[0][0]);
    second = source_of(ends[1][0]);
    coll__reactor_lock();
    ck_assert_int_eq(coll__reactor_add(&first), COLL_OK);
    ck_assert_int_eq(coll__reactor_add(&second), COLL_OK);
    coll__reactor_unlock();
    pid = fork();
    if (!pid)
        _exit(second.fd >= 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(write(ends[1][1], "x", 1), 1);
    while (!atomic_load(&n_ready) && coll__now() < end)
        usleep(1000);
    ck_assert_int_eq(atomic_load(&n_ready), 1);
    coll__reactor_put();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *c = tcase_create("fork");

    tcase_set_timeout(c, 2 * DEADLINE + 30);
    tcase_add_loop_test(c, a_child_may_free_and_nothing_else, 0, 4);
    tcase_add_loop_test(c, a_child_leaves_requests_in_flight_alone, 0, 2);
    tcase_add_loop_test(c, a_thread_may_fork_beside_operations, 0, 2);
    tcase_add_loop_test(c, a_thread_may_fork_beside_control_traffic, 0, 2);
    tcase_add_loop_test(c, a_child_has_none_of_those_that_leave, 0, 2);
    tcase_add_loop_test(c, a_group_that_was_begun_is_the_parents, 0, 2);
    tcase_add_loop_test(c, memory_outlives_a_child_that_frees_it, 0, 2);
    tcase_add_test(c, what_a_child_drops_its_parent_still_hears);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
