/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handles.c - communicators of any processes, by their handles. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1 /* whose children start no threads */
#else
#define HAS_TSAN 0
#endif

#define DEADLINE 60
#define MOST 9

/* Exchange the handles of all ranks. */
static int all_handles(struct world_rank *me, struct coll_handle handles[MOST])
{
    struct coll_handle mine, again;

    WORLD_CHECK(me, !coll_comm_handle(&mine) && !coll_comm_handle(&again));
    WORLD_CHECK(me, !memcmp(&mine, &again, sizeof(mine)));
    return me->oob.allgather(me->oob.arg, &mine, handles, sizeof(mine));
}

/* Make a communicator, and check that all of its ranks are there. */
static int form(struct world_rank *me, int n, const struct coll_handle *handles,
                int rank, uint64_t uuid, struct coll_comm **comm)
{
    WORLD_CHECK(me,
                !coll_comm_create_handles(comm, n, handles, rank, uuid, NULL));
    WORLD_CHECK(me,
                coll_comm_rank(*comm) == rank && coll_comm_size(*comm) == n);
    return world_sum(*comm, 10);
}

/* In one order and the other, over those of odd rank, and beside each other. */
static int all_sorts(struct world_rank *me)
{
    struct coll_handle handles[MOST], turned[MOST], odd[MOST];
    struct coll_comm *all, *back, *part;
    int n = me->size, n_odd = 0;

    WORLD_CHECK(me, !all_handles(me, handles));
    for (int r = 0; r < n; r++) {
        turned[n - 1 - r] = handles[r];
        if (r % 2)
            odd[n_odd++] = handles[r];
    }
    for (uint64_t round = 0; round < 3; round++) {
        WORLD_CHECK(me, !form(me, n, handles, me->rank, 3 * round, &all));
        WORLD_CHECK(
            me, !form(me, n, turned, n - 1 - me->rank, 3 * round + 1, &back));
        if (me->rank % 2) {
            WORLD_CHECK(
                me, !form(me, n_odd, odd, me->rank / 2, 3 * round + 2, &part));
            WORLD_CHECK(me, !coll_comm_destroy(part));
        }
        WORLD_CHECK(me, !world_sum(all, 3) && !world_sum(back, 3));
        WORLD_CHECK(me, !coll_comm_destroy(all));
        WORLD_CHECK(me, !coll_comm_destroy(back));
    }
    return 0;
}

static const int sizes[] = {1, 2, 3, 5, MOST};
#define N_SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

START_TEST(any_set_of_processes_forms)
{
    ck_assert_int_eq(world_fork(sizes[_i], all_sorts, NULL, DEADLINE), 0);
}
END_TEST

START_TEST(ranks_of_one_process_form)
{
    ck_assert_int_eq(world_threads(3, all_sorts, NULL, DEADLINE), 0);
}
END_TEST

/* The others are told to come again until rank 0 has begun.  It has another group's
 * rendezvous before, and one after. */
static int rank_0_comes_late(struct world_rank *me)
{
    struct coll_handle handles[MOST];
    struct coll_comm *first, *second;

    WORLD_CHECK(me, !all_handles(me, handles));
    if (!me->rank) {
        world_await_through(me, me->size - 1, patient(20));
        usleep(200000); /* they look for it */
    } else {
        world_through(me);
    }
    WORLD_CHECK(me, !form(me, me->size, handles, me->rank, 7, &first));
    WORLD_CHECK(me,
                !form(me, me->size, handles, me->rank, UINT64_MAX, &second));
    WORLD_CHECK(me, !coll_comm_destroy(first));
    WORLD_CHECK(me, !coll_comm_destroy(second));
    return 0;
}

START_TEST(ranks_may_come_before_rank_0)
{
    ck_assert_int_eq(world_fork(4, rank_0_comes_late, NULL, DEADLINE), 0);
}
END_TEST

/* One rank dies; those that are left form anew, and the failed one is destroyed later. */
static int survive(struct world_rank *me)
{
    struct coll_handle handles[MOST], left[MOST];
    struct coll_comm *all, *rest;
    int n = 0, dead = me->size / 2, rank = me->rank - (me->rank > dead);

    WORLD_CHECK(me, !all_handles(me, handles));
    WORLD_CHECK(me, !form(me, me->size, handles, me->rank, 1, &all));
    world_meet(me);
    if (me->rank == dead)
        raise(SIGKILL);
    WORLD_CHECK(me, world_await_failure(all, patient(20)) == COLL_ERR_PEER);
    for (int r = 0; r < me->size; r++)
        if (r != dead)
            left[n++] = handles[r];
    WORLD_CHECK(me, !form(me, n, left, rank, 2, &rest));
    coll_comm_destroy(all);
    WORLD_CHECK(me, !world_sum(rest, 10));
    WORLD_CHECK(me, !coll_comm_destroy(rest));
    return 0;
}

START_TEST(survivors_form_anew)
{
    ck_assert_int_eq(world_fork(5, survive, NULL, DEADLINE), 1);
}
END_TEST

/* A child has a handle of its own, by which it meets its parent. */
static int fork_it(struct world_rank *me)
{
    struct coll_handle handles[2];
    struct coll_comm *comm;
    int ends[2], status;
    pid_t child;

    WORLD_CHECK(me, !coll_comm_handle(&handles[0]) && !pipe(ends));
    child = fork();
    if (!child) {
        int rc = coll_comm_handle(&handles[1]);

        rc = rc || !memcmp(&handles[0], &handles[1], sizeof(handles[0])) ||
             write(ends[1], &handles[1], sizeof(handles[1])) < 0 ||
             form(me, 2, handles, 1, 5, &comm) || coll_comm_destroy(comm);
        _exit(rc);
    }
    WORLD_CHECK(me, read(ends[0], &handles[1], sizeof(handles[1])) ==
                        (ssize_t)sizeof(handles[1]));
    WORLD_CHECK(me, !form(me, 2, handles, 0, 5, &comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, waitpid(child, &status, 0) == child && !status);
    return 0;
}

START_TEST(a_child_has_its_own)
{
    ck_assert_int_eq(world_fork(1, fork_it, NULL, DEADLINE), 0);
}
END_TEST

/* Begin two communicators at once, and end them as they come. */
static int begin_two(struct world_rank *me)
{
    struct coll_handle handles[MOST];
    struct coll_creation *creations[2];
    struct coll_comm *comms[2];
    int status[2] = {COLL_IN_PROGRESS, COLL_IN_PROGRESS};

    WORLD_CHECK(me, !all_handles(me, handles));
    for (uint64_t k = 0; k < 2; k++) {
        struct coll_config config = {.size = sizeof(config), .timeout = 50};
        struct coll_create_args args = {.size = sizeof(args),
                                        .nranks = me->size,
                                        .rank = me->rank,
                                        .handles = handles,
                                        .uuid = (k + (uint64_t)me->rank) % 2,
                                        .config = &config};
        int which = (int)args.uuid;

        WORLD_CHECK(me, !coll_comm_create_start(&args, &creations[which]));
        memset(&config, 0xff, sizeof(config));
    }
    for (int n = 0; n < 2; usleep(100))
        for (int k = 0; k < 2; k++)
            if (status[k] == COLL_IN_PROGRESS) {
                status[k] = coll_comm_create_test(creations[k], &comms[k]);
                n += status[k] != COLL_IN_PROGRESS;
            }
    for (int k = 0; k < 2; k++) {
        WORLD_CHECK(me, status[k] == COLL_OK && !world_sum(comms[k], 5));
        WORLD_CHECK(me, !coll_comm_destroy(comms[k]));
    }
    return 0;
}

START_TEST(creations_go_on_beside_their_caller)
{
    ck_assert_int_eq(world_fork(sizes[_i], begin_two, NULL, DEADLINE), 0);
}
END_TEST

/* A lone rank by the launcher's environment, and one whose peer never comes. */
static int begin_others(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .timeout = 0.5};
    struct coll_create_args args = {.size = sizeof(args), .config = &config};
    struct coll_creation *creation;
    struct coll_comm *comm;
    struct coll_unique_id id;
    int status;

    WORLD_CHECK(me, !coll_comm_create_start(&args, &creation));
    EXPECT(me, coll_comm_create_test(creation, NULL), COLL_ERR_INVALID,
           "comm is NULL");
    while ((status = coll_comm_create_test(creation, &comm)) ==
           COLL_IN_PROGRESS)
        usleep(100);
    WORLD_CHECK(me, !status && coll_comm_size(comm) == 1);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !coll_get_unique_id(&id));
    args.id = &id;
    args.nranks = 2;
    WORLD_CHECK(me, !coll_comm_create_start(&args, &creation));
    while ((status = coll_comm_create_test(creation, &comm)) ==
           COLL_IN_PROGRESS)
        usleep(1000);
    EXPECT(me, status, COLL_ERR_BOOTSTRAP, "rank 1");
    args.rank = 2;
    EXPECT(me, coll_comm_create_start(&args, &creation), COLL_ERR_INVALID,
           "0 to nranks - 1");
    args.handles = (const struct coll_handle *)&id;
    EXPECT(me, coll_comm_create_start(&args, &creation), COLL_ERR_INVALID,
           "not both");
    EXPECT(me, coll_comm_create_start(NULL, &creation), COLL_ERR_INVALID,
           "args is NULL");
    EXPECT(me, coll_comm_create_test(NULL, &comm), COLL_ERR_INVALID,
           "creation is NULL");
    return 0;
}

START_TEST(creations_end_with_what_the_call_would_return)
{
    ck_assert_int_eq(world_fork(1, begin_others, NULL, DEADLINE), 0);
}
END_TEST

static int wrong(struct world_rank *me)
{
    struct coll_handle handles[MOST], none = {{0}};
    struct coll_config config = {.size = sizeof(config), .timeout = patient(1)};
    struct coll_comm *comm;
    int next = (me->rank + 1) % me->size;

    WORLD_CHECK(me, !all_handles(me, handles));
    EXPECT(me, coll_comm_handle(NULL), COLL_ERR_INVALID, "handle is NULL");
    EXPECT(me, coll_comm_create_handles(NULL, 2, handles, 0, 1, NULL),
           COLL_ERR_INVALID, "comm is NULL");
    EXPECT(me, coll_comm_create_handles(&comm, 2, NULL, 0, 1, NULL),
           COLL_ERR_INVALID, "handles is NULL");
    EXPECT(me, coll_comm_create_handles(&comm, 0, handles, 0, 1, NULL),
           COLL_ERR_INVALID, "nranks must be 1");
    EXPECT(me, coll_comm_create_handles(&comm, 2, handles, 2, 1, NULL),
           COLL_ERR_INVALID, "0 to nranks - 1");
    EXPECT(me, coll_comm_create_handles(&comm, 2, handles, next, 1, NULL),
           COLL_ERR_INVALID, "is another process's");
    EXPECT(me, coll_comm_create_handles(&comm, 1, &none, 0, 1, NULL),
           COLL_ERR_INVALID, "none of this libcoll");
    world_meet(me);
    /* each waits for a group that the other does not name */
    EXPECT(me,
           coll_comm_create_handles(&comm, 2, handles, me->rank,
                                    10 + (uint64_t)me->rank, &config),
           COLL_ERR_BOOTSTRAP, me->rank ? "handles and uuid" : "rank 1");
    world_meet(me);
    return 0;
}

START_TEST(wrong_calls_are_refused)
{
    ck_assert_int_eq(world_fork(2, wrong, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handles");
    TCase *c = suite_case(suite, "handles", 2 * DEADLINE);

    tcase_add_loop_test(c, any_set_of_processes_forms, 0, N_SIZES);
    tcase_add_test(c, ranks_of_one_process_form);
    tcase_add_test(c, ranks_may_come_before_rank_0);
    tcase_add_test(c, survivors_form_anew);
    if (!HAS_TSAN)
        tcase_add_test(c, a_child_has_its_own);
    tcase_add_loop_test(c, creations_go_on_beside_their_caller, 0, N_SIZES);
    tcase_add_test(c, creations_end_with_what_the_call_would_return);
    tcase_add_test(c, wrong_calls_are_refused);
    return suite_run(suite);
}
