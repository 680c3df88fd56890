/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shrink.c - ranks die, and the others go on without them. */
#include "lib/comm/create.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"
#include "tests/comm/scene.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEADLINE patient(60)

static int knows(struct coll_comm *comm, int rank)
{
    int dead[9], n = 9;

    if (coll_comm_failed(comm, dead, &n))
        return 0;
    while (n-- && dead[n] != rank)
        ;
    return n >= 0;
}

/* The victims die one after another; the others shrink each time. */
static int die_in_turn(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me), *rest;
    int left = me->size, n_ready = 0;

    WORLD_CHECK(me, comm && world_sum_is(comm, left));
    for (int r = 0; r < me->size; r++) {
        int victim = r - (me->size - left); /* its rank in comm */

        if (!(scene->victims >> r & 1))
            continue;
        gather(scene, n_ready += left--);
        if (me->rank == r)
            raise(SIGKILL);
        WORLD_CHECK(me, world_await_failure(comm, DEADLINE) == COLL_ERR_PEER);
        WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
        WORLD_CHECK(me, knows(comm, victim));
        WORLD_CHECK(me,
                    coll_comm_size(rest) == left && world_sum_is(rest, left));
        coll_comm_destroy(comm);
        comm = rest;
    }
    WORLD_CHECK(me, world_sum_is(comm, left));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(the_others_go_on_each_time)
{
    unsigned victims[] = {1, 2, 1 | 4, 8 | 16, 1 | 2 | 4 | 8, 32, 7 << 3};
    struct scene *scene = new_scene(victims[_i % 7]);

    setenv("COLL_TRANSPORTS", world_transports(_i / 7), 1);
    ck_assert_int_eq(world_fork(7, die_in_turn, scene, DEADLINE),
                     __builtin_popcount(scene->victims));
}
END_TEST

/* All victims die at once, at any moment of a loop of shrinks. */
static int die_any_time(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me), *rest;
    int left = me->size - __builtin_popcount(scene->victims);

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    gather(scene, me->size);
    if (scene->victims >> me->rank & 1) {
        usleep((unsigned)me->rank * 1771 % 5000);
        raise(SIGKILL);
    }
    while (coll_comm_size(comm) > left || !world_sum_is(comm, left)) {
        WORLD_CHECK(me,
                    !coll_comm_shrink(comm, NULL, 0, COLL_SHRINK_ABORT, &rest));
        coll_comm_destroy(comm);
        comm = rest;
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(deaths_within_shrinks_are_no_matter)
{
    static const unsigned victims[] = {
        1 | 2,  4 | 8 | 16, 1 | 4 | 64, 128 | 2, 1 | 2 | 4 | 8 | 16 | 32 | 64,
        3 | 128};
    struct scene *scene = new_scene(victims[_i % 6]);

    setenv("COLL_TRANSPORTS", world_transports(_i / 6 % 2), 1);
    ck_assert_int_eq(world_fork(8, die_any_time, scene, DEADLINE),
                     __builtin_popcount(scene->victims));
}
END_TEST

/* Who is excluded does not call; the communicator need not have failed. */
static int exclude(struct world_rank *me)
{
    static const int excluded[] = {0, 3};
    struct coll_comm *comm = world_join(me), *rest;
    int is_in = me->rank != 0 && me->rank != 3;

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    if (is_in) {
        WORLD_CHECK(me, !coll_comm_shrink(comm, excluded, 2, 0, &rest));
        WORLD_CHECK(me, world_sum_is(rest, me->size - 2));
        WORLD_CHECK(me, !coll_comm_destroy(rest));
    }
    WORLD_CHECK(me, world_sum_is(comm, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(who_is_excluded_does_not_call)
{
    ck_assert_int_eq(world_fork(5, exclude, NULL, DEADLINE), 0);
}
END_TEST

static int is_of_pair(const struct world_rank *me)
{
    return !me->rank || me->rank == 3;
}

/* Rank 2 of 4 dies, rank 3's parent: rank 0 takes its place.  These two are connected
 * already, as a pair. */
static int lose_the_parent(struct world_rank *me, struct coll_comm **comm,
                           struct coll_comm **pair)
{
    *comm = world_join(me);
    WORLD_CHECK(me, *comm && !coll_comm_split(*comm, is_of_pair(me), 0, pair));
    WORLD_CHECK(me, world_sum_is(*pair, 2));
    gather(me->arg, 4);
    if (me->rank == 2)
        raise(SIGKILL);
    WORLD_CHECK(me, world_await_failure(*comm, DEADLINE) == COLL_ERR_PEER);
    return 0;
}

/* A rank leaves, of which the dead one would have known. */
static int leave_unseen(struct world_rank *me)
{
    struct scene *scene = me->arg;
    int leaver = (int)scene->victims;
    struct coll_comm *comm, *pair, *rest;

    if (lose_the_parent(me, &comm, &pair))
        return 1;
    if (me->rank == leaver)
        coll_comm_destroy(comm);
    gather(scene, 7);
    if (me->rank != leaver) {
        WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
        WORLD_CHECK(me, knows(comm, 2) && knows(comm, leaver));
        WORLD_CHECK(me, world_sum_is(rest, 2));
        WORLD_CHECK(me, !coll_comm_destroy(rest));
        coll_comm_destroy(comm);
    }
    WORLD_CHECK(me, !coll_comm_destroy(pair) || !is_of_pair(me));
    return 0;
}

START_TEST(who_has_left_is_not_waited_for)
{
    ck_assert_int_eq(
        world_fork(4, leave_unseen, new_scene(_i ? 3 : 0), DEADLINE), 1);
}
END_TEST

/* The same, but the rank is stopped: it is asked in vain, and then excluded. */
static int stop_unseen(struct world_rank *me)
{
    static const int stopped = 3;
    struct scene *scene = me->arg;
    struct coll_comm *comm, *pair, *rest;

    if (lose_the_parent(me, &comm, &pair))
        return 1;
    gather(scene, 7);
    while (me->rank == stopped)
        raise(SIGSTOP);
    if (!me->rank)
        patient_stop(me->pids[stopped]);
    if (!me->rank) {
        world_hurry(comm, 0.5);
        EXPECT(me, coll_comm_shrink(comm, NULL, 0, 0, &rest), COLL_ERR_TIMEOUT,
               "an agreement did not end");
        world_hurry(comm, DEADLINE);
        WORLD_CHECK(me, !coll_comm_shrink(comm, &stopped, 1, 0, &rest));
    } else {
        WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
    }
    WORLD_CHECK(me, world_sum_is(rest, 2));
    coll_comm_destroy(comm);
    WORLD_CHECK(me, !coll_comm_destroy(rest));
    if (!me->rank)
        kill(me->pids[stopped], SIGKILL);
    coll_comm_destroy(pair);
    return 0;
}

START_TEST(who_is_asked_in_vain_can_be_excluded)
{
    ck_assert_int_eq(world_fork(4, stop_unseen, new_scene(0), DEADLINE), 2);
}
END_TEST

/* Rank 0's first agreement does not end in time.  The others have begun to make the
 * communicator when it calls again. */
static int come_early(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me), *rest;
    uint32_t n_agreed;

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    n_agreed = coll__ctrl_agreed(world_ctrl(comm));
    if (me->rank) {
        while (!atomic_load(&scene->n_ready))
            usleep(200);
    } else {
        world_hurry(comm, 0.01);
        EXPECT(me, coll_comm_shrink(comm, NULL, 0, 0, &rest), COLL_ERR_TIMEOUT,
               "an agreement did not end");
        world_hurry(comm, DEADLINE);
        atomic_store(&scene->n_ready, 1);
        while (coll__ctrl_agreed(world_ctrl(comm)) == n_agreed)
            usleep(200);
        usleep(20000); /* they ask for their connections now */
    }
    WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
    WORLD_CHECK(me, world_sum_is(rest, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm) && !coll_comm_destroy(rest));
    return 0;
}

START_TEST(a_shrink_that_was_too_early_goes_on)
{
    for (int size = 2; size <= 5; size++)
        ck_assert_int_eq(world_fork(size, come_early, new_scene(0), DEADLINE),
                         0);
}
END_TEST

/* What the last rank shares with the threads of the others. */
struct hasty {
    struct coll_comm *comm;
    struct scene *scene;
};

/* When this rank makes its part of the new communicator, whose waits have the timeout that
 * it began with, let it wait only shortly for the agreement that follows. */
static void *hurry(void *arg)
{
    struct hasty *h = arg;
    int is_making = 0;

    while (!is_making) {
        coll__reactor_lock();
        is_making = world_ctrl(h->comm)->parts.first != NULL;
        coll__reactor_unlock();
        usleep(200);
    }
    world_hurry(h->comm, 0.01);
    atomic_fetch_add(&h->scene->n_ready, 1);
    return NULL;
}

static int shrink_hastily(struct world_rank *me, struct coll_comm *comm,
                          struct coll_comm **rest)
{
    struct hasty h = {comm, me->arg};
    uint64_t flags = 0;
    pthread_t thread;

    WORLD_CHECK(me, !pthread_create(&thread, NULL, hurry, &h));
    EXPECT(me, coll_comm_shrink(comm, NULL, 0, 0, rest), COLL_ERR_TIMEOUT,
           "an agreement did not end");
    pthread_join(thread, NULL);
    EXPECT(me, coll_comm_agree(comm, &flags), COLL_ERR_INVALID,
           "call it again");
    world_hurry(comm, DEADLINE);
    atomic_fetch_add(&h.scene->n_told, 1);
    return 0;
}

/* Do what coll_comm_shrink() does, and come to its second agreement when the others have
 * waited for this rank in vain. */
static int shrink_slowly(struct world_rank *me, struct coll_comm *comm,
                         struct coll_comm **rest)
{
    struct scene *scene = me->arg;
    int ranks[] = {0, 1, 2, 3, 4};
    struct coll__ctrl_part part = {
        .rank = me->rank, .size = me->size, .ranks = ranks, .is_rest = 1};
    struct coll__ctrl *ctrl = world_ctrl(comm);
    uint64_t flags = 0, dead;

    coll__ctrl_divide_begin(ctrl);
    WORLD_CHECK(me, !coll__ctrl_agree(ctrl, &flags, &dead, DEADLINE));
    snprintf((char *)part.tag, sizeof(part.tag), "rest %u",
             coll__ctrl_agreed(ctrl));
    while (atomic_load(&scene->n_ready) < me->size - 1)
        usleep(200);
    WORLD_CHECK(me, !coll__comm_divide(comm, &part, rest));
    atomic_fetch_add(&scene->n_ready, 1);
    coll__ctrl_divide_end(ctrl);
    while (atomic_load(&scene->n_told) < me->size - 1)
        usleep(200);
    flags = 1;
    WORLD_CHECK(me, !coll__ctrl_agree(ctrl, &flags, &dead, DEADLINE));
    WORLD_CHECK(me, flags == 1);
    return 0;
}

static int outwait(struct world_rank *me)
{
    struct scene *scene = me->arg;
    int is_last = me->rank == me->size - 1, is_left = scene->victims != 0;
    struct coll_comm *comm = world_join(me), *rest = NULL;

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    if (is_last ? shrink_slowly(me, comm, &rest)
                : shrink_hastily(me, comm, &rest))
        return 1;
    if (is_left) { /* they give it up, once all have made their parts */
        while (atomic_load(&scene->n_ready) < me->size ||
               atomic_load(&scene->n_told) < me->size - 1)
            usleep(200);
        coll_comm_destroy(comm);
        if (is_last)
            coll_comm_destroy(rest);
        return 0;
    }
    if (!is_last)
        WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
    WORLD_CHECK(me, world_sum_is(rest, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm) && !coll_comm_destroy(rest));
    return 0;
}

START_TEST(a_shrink_whose_last_agreement_is_late_goes_on)
{
    for (int size = 2; size <= 5; size++)
        ck_assert_int_eq(
            world_fork(size, outwait, new_scene((unsigned)_i), DEADLINE), 0);
}
END_TEST

static int agree(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint64_t flags = ~((uint64_t)1 << me->rank);
    int n = 0;

    WORLD_CHECK(me, comm && !coll_comm_agree(comm, &flags));
    WORLD_CHECK(me, flags == ~(((uint64_t)1 << me->size) - 1));
    coll_comm_abort(comm, "enough");
    flags = 6;
    WORLD_CHECK(me, !coll_comm_agree(comm, &flags) && flags == 6);
    WORLD_CHECK(me, !coll_comm_failed(comm, NULL, &n) && n == 0);
    world_meet(me);
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(agreements_go_on_after_an_abort)
{
    for (int size = 1; size <= 5; size += 2)
        ck_assert_int_eq(world_fork(size, agree, NULL, DEADLINE), 0);
}
END_TEST

static int misuse(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *rest;
    int wrong[] = {7}, own[] = {me->rank}, n = -1;
    struct coll_unique_id id = {{0}};

    WORLD_CHECK(me, comm);
    EXPECT(me, coll_comm_agree(comm, NULL), COLL_ERR_INVALID, "flags is NULL");
    EXPECT(me, coll_comm_failed(comm, NULL, &n), COLL_ERR_INVALID,
           "the length of ranks");
    EXPECT(me, coll_comm_shrink(NULL, NULL, 0, 0, &rest), COLL_ERR_INVALID,
           "comm is NULL");
    EXPECT(me, coll_comm_shrink(comm, NULL, 0, 0, NULL), COLL_ERR_INVALID,
           "rest is NULL");
    EXPECT(me, coll_comm_shrink(comm, NULL, 0, 2, &rest), COLL_ERR_INVALID,
           "COLL_SHRINK_ABORT");
    EXPECT(me, coll_comm_shrink(comm, NULL, 1, 0, &rest), COLL_ERR_INVALID,
           "the length of exclude");
    EXPECT(me, coll_comm_shrink(comm, wrong, 1, 0, &rest), COLL_ERR_INVALID,
           "rank 7 is excluded");
    EXPECT(me, coll_comm_shrink(comm, own, 1, 0, &rest), COLL_ERR_INVALID,
           "do not call it");
    EXPECT(me, coll_comm_grow(comm, me->rank, &id, &rest), COLL_ERR_INVALID,
           "rank 0 passed a wrong argument");
    EXPECT(me, coll_comm_grow(comm, 1 + me->rank, &id, &rest), COLL_ERR_INVALID,
           "rank 1 and rank 0 passed different numbers");
    EXPECT(me, coll_comm_waiting(comm, NULL), COLL_ERR_INVALID, "n is NULL");
    WORLD_CHECK(me, !coll_comm_waiting(comm, &n) && n == 0);
    EXPECT(me, coll_comm_grow(comm, 1, NULL, &rest), COLL_ERR_BOOTSTRAP,
           me->rank ? "rank 0 got no newcomers"
                    : "the launcher has no newcomers");
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(wrong_arguments_are_named)
{
    ck_assert_int_eq(world_fork(2, misuse, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shrink");
    TCase *cases = suite_case(suite, "shrink", 60);

    tcase_add_loop_test(cases, the_others_go_on_each_time, 0, 14);
    tcase_add_loop_test(cases, deaths_within_shrinks_are_no_matter, 0, 12);
    tcase_add_test(cases, who_is_excluded_does_not_call);
    tcase_add_loop_test(cases, who_has_left_is_not_waited_for, 0, 2);
    tcase_add_test(cases, who_is_asked_in_vain_can_be_excluded);
    tcase_add_test(cases, a_shrink_that_was_too_early_goes_on);
    tcase_add_loop_test(cases, a_shrink_whose_last_agreement_is_late_goes_on, 0,
                        2);
    tcase_add_test(cases, agreements_go_on_after_an_abort);
    tcase_add_test(cases, wrong_arguments_are_named);
    return suite_run(suite);
}
