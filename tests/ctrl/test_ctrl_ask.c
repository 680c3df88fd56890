/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ctrl_ask.c - questions along the control tree, and who is silent.
 *
 * Ranks are threads where that does, and processes where one of them is to be
 * stopped.
 */
#include "lib/ctrl/ctrl.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT patient(20)

#define ALL_ANSWER patient(5) /* nobody is silent, so nobody waits for so long */

#define N_STARTED 42 /* by every rank: boot_world.c */

/* A call that a rank asks about: operation seq, or a message of a peer. */
static struct coll__ctrl_call call_of(int rank, int peer, uint64_t seq)
{
    return (struct coll__ctrl_call){
        .rank = rank,
        .peer = peer,
        .sig = {.seq = seq,
                .collective = peer < 0 ? COLL_BARRIER : COLL_RECV,
                .root = peer < 0 ? 0 : peer}};
}

/* Ask until something is heard; 0, or 1 if nothing ever is. */
static int hear(struct coll__ctrl *ctrl, const struct coll__ctrl_call *call,
                double since, struct coll__ctrl_roll *roll)
{
    double end = coll__now() + TIMEOUT, asked;

    while (!coll__ctrl_heard(ctrl, call, since, roll)) {
        coll__ctrl_ask(ctrl, call, since, &asked);
        if (coll__now() > end)
            return 1;
        world_nap(0.001);
    }
    return 0;
}

static int rank_asks(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl_call call;
    struct coll__ctrl_roll roll;
    struct coll__ctrl *ctrl;
    int bad = 0;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    coll__ctrl_answer_within(ctrl, ALL_ANSWER);
    bad |= world_exchange(ctrl, w->rank, w->size, 1, 0); /* all are in */
    for (int r = 0; r < w->size; r++) {
        call = call_of(w->rank, r, N_STARTED);
        bad |= hear(ctrl, &call, coll__now(), &roll) || roll.n_late ||
               strcmp(roll.text, "in none");
    }
    for (int n = 0; n < 2; n++) {
        call = call_of(w->rank, -1, N_STARTED + (uint64_t)n);
        bad |= hear(ctrl, &call, coll__now(), &roll) || roll.n_silent;
        bad |= roll.n_late != (w->size > 1 ? n * w->size : 0);
        for (int r = 0; r < roll.n_late; r++)
            bad |= roll.late[r] != r;
        bad |= roll.n_late && strcmp(roll.text, "in none");
    }
    bad |= coll__ctrl_close(ctrl, 1, TIMEOUT);
    return bad || world_n_calls(&notice);
}

START_TEST(every_rank_answers_every_rank)
{
    ck_assert_int_eq(world_threads(_i, rank_asks, NULL), 0);
}
END_TEST

#define N_WAITS 3

/* Several waits are looked after in turn, each seldom enough that answers come in
 * between: each hears. */
static int rank_asks_in_turn(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    double since, asked, end = coll__now() + TIMEOUT;
    struct coll__ctrl_roll roll;
    struct coll__ctrl *ctrl;
    int bad = 0, n_heard = 0, has_heard[N_WAITS] = {0};

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    bad |= world_exchange(ctrl, w->rank, w->size, 1, 0);
    since = coll__now();
    for (int i = 0; n_heard < N_WAITS && coll__now() < end; i++) {
        struct coll__ctrl_call call =
            call_of(w->rank, (w->rank + 1) % w->size, N_STARTED - i % N_WAITS);

        if (has_heard[i % N_WAITS])
            continue;
        if (coll__ctrl_heard(ctrl, &call, since, &roll))
            n_heard += has_heard[i % N_WAITS] = 1;
        else
            coll__ctrl_ask(ctrl, &call, since, &asked);
        world_nap(0.005);
    }
    bad |= n_heard < N_WAITS;
    bad |= coll__ctrl_close(ctrl, 1, TIMEOUT);
    return bad || world_n_calls(&notice);
}

START_TEST(waits_in_turn_hear_each)
{
    ck_assert_int_eq(world_threads(_i, rank_asks_in_turn, NULL), 0);
}
END_TEST

/* What the processes of a test share. */
struct scene {
    int stopped, asker, n_silent, first; /* what the asker hears of */
    atomic_int is_over, pid;             /* of the one that is stopped */
    atomic_ullong n_questions;
    double since;
    struct world_notice notices[WORLD_MAX];
};

/* Who is below a stopped rank is as silent as it; who asks from there hears of
 * those below the stopped one that are on its own way, and of that one. */
static int rank_asks_the_stopped(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct world_notice *notice = &scene->notices[w->rank];
    struct coll__ctrl_events events = world_events(notice);
    struct coll__ctrl_call call = call_of(w->rank, -1, N_STARTED);
    struct coll__ctrl_roll roll;
    struct coll__ctrl *ctrl;
    int bad = 0, n_tries = 5; /* others may be slow to answer: ask again */

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    coll__ctrl_answer_within(ctrl, patient(0.2));
    bad |= world_exchange(ctrl, w->rank, w->size, 1, 0);
    if (w->rank == scene->stopped) {
        atomic_store(&scene->pid, getpid());
        raise(SIGSTOP);
    } else if (w->rank == scene->asker) {
        while (!atomic_load(&scene->pid))
            world_nap(0.001);
        patient_stop(atomic_load(&scene->pid));
        do
            bad |= hear(ctrl, &call, coll__now(), &roll);
        while (!bad && roll.n_silent > scene->n_silent && n_tries--);
        bad |= roll.n_late || roll.n_silent != scene->n_silent;
        for (int i = 0; i < scene->n_silent; i++)
            bad |= roll.silent[i] != scene->first + i;
        bad |= world_n_calls(notice);
        atomic_store(&scene->is_over, 1);
    }
    return coll__ctrl_close(ctrl, 1, TIMEOUT) || bad;
}

static const struct scene stopped[] = {
    {.stopped = 3, .asker = 0, .n_silent = 1, .first = 3},
    {.stopped = 4, .asker = 3, .n_silent = 4, .first = 4},
    {.stopped = 6, .asker = 4, .n_silent = 2, .first = 6},
    {.stopped = 0, .asker = 4, .n_silent = 1, .first = 0},
    {.stopped = 4, .asker = 6, .n_silent = 1, .first = 4},
    {.stopped = 0, .asker = 7, .n_silent = 1, .first = 0},
};

START_TEST(a_stopped_rank_does_not_answer_and_is_not_dead)
{
    struct scene *scene = world_shared(sizeof(*scene));
    double end = coll__now() + TIMEOUT;
    pid_t pids[WORLD_MAX];

    *scene = stopped[_i];
    world_start(8, rank_asks_the_stopped, scene, pids);
    while (!atomic_load(&scene->is_over)) {
        ck_assert(coll__now() < end);
        world_nap(0.001);
    }
    kill(pids[scene->stopped], SIGCONT);
    ck_assert_int_eq(world_wait(8, pids), 0);
}
END_TEST

/* All ask at about the same time. */
static int rank_asks_as_all(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl_call call = call_of(w->rank, -1, N_STARTED + 1);
    struct coll__ctrl_roll roll;
    struct coll__ctrl *ctrl;
    int bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    coll__ctrl_answer_within(ctrl, ALL_ANSWER);
    if (!w->rank)
        scene->since = coll__now();
    bad = world_exchange(ctrl, w->rank, w->size, 1, 0);
    bad |= hear(ctrl, &call, scene->since, &roll);
    bad |= roll.n_late != w->size || roll.n_silent;
    for (int i = 0; i < COLL__NAMED && i < w->size; i++)
        bad |= roll.late[i] != i;
    bad |= world_exchange(ctrl, w->rank, w->size, 1, 1); /* all have heard */
    atomic_fetch_add(&scene->n_questions, coll__ctrl_n_questions(ctrl));
    return coll__ctrl_close(ctrl, 1, TIMEOUT) || bad;
}

START_TEST(a_question_that_all_have_is_asked_once)
{
    struct scene *scene = world_shared(sizeof(*scene));

    ck_assert_int_eq(world_threads(_i, rank_asks_as_all, scene), 0);
    ck_assert_uint_ge(atomic_load(&scene->n_questions), 3ull * (_i - 1));
    ck_assert_uint_le(atomic_load(&scene->n_questions), 4ull * (_i - 1));
}
END_TEST

/* Several threads of a rank ask at once, while others exchange. */
static void *ask_often(void *arg)
{
    struct coll__ctrl_call call = call_of(0, -1, N_STARTED);
    struct coll__ctrl_roll roll;

    for (int i = 0; i < 20; i++)
        if (hear(arg, &call, coll__now(), &roll))
            return arg;
    return NULL;
}

static int rank_is_busy(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    pthread_t threads[2];
    void *result;
    int bad = 0;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, ask_often, ctrl))
            return 1;
    for (int i = 0; i < 20; i++)
        bad |= world_exchange(ctrl, w->rank, w->size, 64, i);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &result);
        bad |= result != NULL;
    }
    bad |= world_exchange(ctrl, w->rank, w->size, 0, 0);
    return coll__ctrl_close(ctrl, 1, TIMEOUT) || bad || world_n_calls(&notice);
}

START_TEST(questions_and_exchanges_mix)
{
    ck_assert_int_eq(world_threads(4, rank_is_busy, NULL), 0);
}
END_TEST

static Suite *ask_suite(void)
{
    Suite *suite = suite_create("ctrl_ask");
    TCase *tc = suite_case(suite, "ask", 120);

    tcase_add_loop_test(tc, every_rank_answers_every_rank, 1, 10);
    tcase_add_loop_test(tc, waits_in_turn_hear_each, 2, 4);
    tcase_add_loop_test(tc, a_stopped_rank_does_not_answer_and_is_not_dead, 0,
                        (int)ARRAY_LEN(stopped));
    tcase_add_loop_test(tc, a_question_that_all_have_is_asked_once, 63, 65);
    tcase_add_test(tc, questions_and_exchanges_mix);
    return suite;
}

int main(void) { return suite_run(ask_suite()); }
