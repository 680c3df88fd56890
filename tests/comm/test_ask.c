/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ask.c - waits that take long: how many questions they cost, that nobody
 * stops for one, and that what is wrong is found all the same.
 *
 * The linker gives this file what the library would wait by (local.mk). */
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/ctrl/ctrl.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE 60
#define MANY 64

/* What the ranks of a test share. */
struct scene {
    int kind;
    double waited; /* s, by the one that waited longest */
    atomic_ullong n_questions;
    atomic_int n_gaps, is_stopped;
};

static struct scene *new_scene(int kind)
{
    struct scene *scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(scene, MAP_FAILED);
    scene->kind = kind;
    return scene;
}

static void nap(double seconds) { usleep((useconds_t)(seconds * 1e6)); }

/* ---- waits ----------------------------------------------------------------- */

static _Thread_local int is_testing, n_waits;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __real_coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                           double deadline);
int __wrap_coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                           double deadline);
void __real_coll__reactor_lock(void);
void __wrap_coll__reactor_lock(void);
int __real_coll__reactor_poll(struct pollfd *fds, int n, double until);
int __wrap_coll__reactor_poll(struct pollfd *fds, int n, double until);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    n_waits += is_testing;
    return __real_nanosleep(time, left);
}

int __wrap_sched_yield(void)
{
    n_waits += is_testing;
    return __real_sched_yield();
}

int __wrap_coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                           double deadline)
{
    n_waits += is_testing;
    return __real_coll__lock_wait(lock, cond, deadline);
}

void __wrap_coll__reactor_lock(void)
{
    n_waits += is_testing;
    __real_coll__reactor_lock();
}

int __wrap_coll__reactor_poll(struct pollfd *fds, int n, double until)
{
    n_waits += is_testing;
    return __real_coll__reactor_poll(fds, n, until);
}

/* Test until the end, which may be an error; how often the library waited in
 * those that said that it goes on. */
static int test_to_the_end(struct coll_request *request, int *rc)
{
    int n = 0;

    do {
        n_waits = 0;
        is_testing = 1;
        *rc = coll_test(request);
        is_testing = 0;
        if (*rc == COLL_IN_PROGRESS)
            n += n_waits;
    } while (*rc == COLL_IN_PROGRESS);
    return n;
}

/* ---- how many questions ---------------------------------------------------- */

/* All wait for one rank, each in a barrier or, of an odd kind, some of them in a
 * receive from it. */
static int wait_for_one(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me);
    int late = me->size / 2, x = 0, is_in_recv = scene->kind && me->rank % 2;
    double begin;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !world_barrier(me, comm));
    begin = coll__now();
    if (me->rank == late)
        nap(3);
    for (int r = 1; r < me->size && scene->kind && me->rank == late; r += 2)
        WORLD_CHECK(me,
                    r == late || !coll_send(&x, 1, COLL_I32, r, comm, NULL));
    if (is_in_recv && me->rank != late)
        WORLD_CHECK(me, !coll_recv(&x, 1, COLL_I32, late, comm, NULL));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (!me->rank)
        scene->waited = coll__now() - begin;
    atomic_fetch_add(&scene->n_questions, coll__ctrl_n_questions(comm->ctrl));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* There is a round a second at most, as one who began to wait before its end
 * waits another second at least.  A message's receiver asks its peer alone, six
 * connections away at most and back, after 1, 3, 7, ... s. */
START_TEST(ranks_that_wait_long_ask_little)
{
    struct scene *scene = new_scene(_i);
    unsigned long long n, n_rounds;

    patient_timeout(60);
    ck_assert_int_eq(world_fork(MANY, wait_for_one, scene, 3 * DEADLINE), 0);
    n = atomic_load(&scene->n_questions);
    n_rounds = 1 + (unsigned long long)scene->waited;
    printf("%d ranks waited %.1f s: %llu messages for questions\n", MANY,
           scene->waited, n);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(n, 4 * (MANY - 1) * n_rounds +
                             (_i ? MANY / 2 * 12 * n_rounds : 0));
}
END_TEST

#define LARGE (64 << 20)
#define LONG 2.5 /* s */
#define GAP 0.5  /* s; more than that without movement may be a reason to ask */

/* Rank 1 moves a large message on now and then only, so that each wait of rank
 * 0's lasts; it says when it was kept from that for too long itself. */
static int move_slowly(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me);
    char *x = calloc(1, LARGE);
    struct coll_args args = {.size = sizeof(args),
                             .collective = me->rank ? COLL_SEND : COLL_RECV,
                             .type = COLL_U8,
                             .root = !me->rank,
                             .in = x,
                             .out = x,
                             .count = LARGE};
    struct coll_request *request;
    uint64_t n_before;
    double begin, last;
    int rc = COLL_IN_PROGRESS;

    WORLD_CHECK(me, comm && x);
    if (!me->rank)
        args.in = NULL;
    else
        args.out = NULL;
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    last = coll__now(); /* whoever is late to the barrier was kept as well */
    WORLD_CHECK(me, !world_barrier(me, comm));
    begin = coll__now();
    n_before = coll__ctrl_n_questions(comm->ctrl);
    WORLD_CHECK(me, !coll_start(request));
    if (!me->rank)
        WORLD_CHECK(me, !coll_wait(request, 0));
    while (me->rank && rc == COLL_IN_PROGRESS) {
        rc = coll_test(request);
        if (coll__now() - last > GAP)
            atomic_fetch_add(&scene->n_gaps, 1);
        last = coll__now();
        if (last - begin < LONG)
            nap(0.05);
    }
    WORLD_CHECK(me, me->rank == 0 || rc == COLL_OK);
    if (!me->rank)
        scene->waited = coll__now() - begin;
    atomic_fetch_add(&scene->n_questions,
                     coll__ctrl_n_questions(comm->ctrl) - n_before);
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    free(x);
    return 0;
}

/* Where rank 1 was kept from its work, or everything was sent at once, another
 * try shows more; on a machine that is always busy none does. */
START_TEST(nobody_is_asked_while_data_moves)
{
    setenv("COLL_TRANSPORTS", world_transports(0), 1);
    setenv("COLL_CMA", "off", 1);
    for (int n = 0; n < 5; n++) {
        struct scene *scene = new_scene(0);

        ck_assert_int_eq(world_fork(2, move_slowly, scene, 3 * DEADLINE), 0);
        if (atomic_load(&scene->n_gaps) || scene->waited < 1.5)
            continue;
        ck_assert_uint_eq(atomic_load(&scene->n_questions), 0);
        return;
    }
    printf("left out: rank 1 never had time for its work\n");
}
END_TEST

/* ---- coll_test() never waits ----------------------------------------------- */

/* Rank 0 is silent for longer than the deadline: the others ask, and ask again,
 * by tests alone. */
static int test_for_silent(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me);
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    int rc, n;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !world_barrier(me, comm));
    world_hurry(comm, 2.5);
    if (!me->rank) {
        WORLD_CHECK(me,
                    world_await_failure(comm, patient(20)) == COLL_ERR_TIMEOUT);
    } else {
        WORLD_CHECK(me, !coll_start(request));
        n = test_to_the_end(request, &rc);
        EXPECT(me, rc, COLL_ERR_TIMEOUT, "not arrived: rank 0");
        WORLD_CHECK(me, n == 0);
    }
    atomic_fetch_add(&scene->n_questions, coll__ctrl_n_questions(comm->ctrl));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(a_test_never_waits_for_answers)
{
    struct scene *scene = new_scene(0);

    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, test_for_silent, scene, DEADLINE), 0);
    ck_assert_uint_gt(atomic_load(&scene->n_questions), 0);
}
END_TEST

/* A rank dies, and its connection breaks, by which the library learns of it first
 * where that is faster than the control connections. */
static int test_for_dead(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    int rc = COLL_OK, n = 0;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (!me->rank) {
        nap(0.3);
        kill(getpid(), SIGKILL);
    }
    while (rc == COLL_OK) {
        rc = coll_start(request);
        if (rc == COLL_OK)
            n += test_to_the_end(request, &rc);
    }
    EXPECT(me, rc, COLL_ERR_PEER, "rank 0 ");
    WORLD_CHECK(me, n == 0);
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

/* A connection breaks under two live ranks, of which nobody has any news. */
static int test_for_broken(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    struct coll__xfer lost = {.peer = 0};
    struct coll__signature call = {.collective = COLL_BARRIER};
    int rc, n;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (!me->rank) {
        rc = world_await_failure(comm, patient(20));
    } else { /* as a transport says it */
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me,
                    !coll__comm_run_failed(comm, &call, &lost, COLL_ERR_PEER));
        n = test_to_the_end(request, &rc);
        WORLD_CHECK(me, n == 0);
    }
    EXPECT(me, rc, COLL_ERR_PEER, "the connection to rank 0 broke");
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_test_never_waits_for_news)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, test_for_dead, NULL, DEADLINE), 1);
    ck_assert_int_eq(world_fork(2, test_for_broken, NULL, DEADLINE), 0);
}
END_TEST

/* ---- what is found --------------------------------------------------------- */

/* Of 9 ranks on few cores, 4 waits in another operation than the others; no
 * message tells anybody. */
static int disagree(struct world_rank *me)
{
    const struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me), *other;
    int x = 0, rc, is_odd = me->rank == 4;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (scene->kind == 0) /* roots that nobody sends to */
        rc = coll_broadcast(&x, &x, 1, COLL_I32, is_odd ? 3 : 4, comm, NULL);
    else if (scene->kind == 1) /* a message of one that is in a collective */
        rc = is_odd ? coll_recv(&x, 1, COLL_I32, 7, comm, NULL)
                    : coll_barrier(comm, NULL);
    else if (scene->kind == 2)
        rc = is_odd ? coll_comm_split(comm, 0, 0, &other)
                    : coll_barrier(comm, NULL);
    else
        rc = is_odd ? coll_comm_destroy(comm) : coll_barrier(comm, NULL);
    while (rc == COLL_OK && !is_odd) /* it has got what it wanted */
        rc = coll_comm_async_error(comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "the ranks disagree: rank ");
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 4 called "));
    WORLD_CHECK(me, strstr(coll_last_error(), " where rank "));
    if (scene->kind != 3 || !is_odd)
        WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(nine_ranks_learn_who_disagrees)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    setenv("COLL_ALGO", "dissemination", 1);
    ck_assert_int_eq(world_fork(9, disagree, new_scene(_i / 2), DEADLINE), 0);
}
END_TEST

/* A rank of the tree is stopped, rank 8 has not come, and the others wait. */
static int one_is_stopped(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    char words[64];
    int stopped = ((struct scene *)me->arg)->kind;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    world_hurry(comm, 1.5);
    coll__ctrl_answer_within(comm->ctrl, patient(0.2));
    if (me->rank == stopped) {
        raise(SIGSTOP);
        return 0;
    }
    patient_stop(me->pids[stopped]);
    snprintf(words, sizeof(words), "no answer from rank %d", stopped);
    if (me->rank < 8) {
        EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_TIMEOUT, words);
        world_through(me);
    }
    WORLD_CHECK(me, world_await_through(me, 7, DEADLINE / 2));
    if (me->rank == 8)
        kill(me->pids[stopped], SIGKILL); /* it ends the test */
    return 0;
}

/* Those below a stopped rank are cut off from what the others are told, and find
 * out by themselves.  _i: which one. */
START_TEST(a_stopped_rank_in_the_tree_is_named_on_both_sides)
{
    int step = getenv("TEST_QUICK") ? 3 : 1;

    ck_assert_int_eq(
        world_fork(9, one_is_stopped, new_scene(_i * step), DEADLINE), 1);
}
END_TEST

/* A rank dies at about the time at which all ask. */
static int one_dies(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int victim = ((struct scene *)me->arg)->kind;
    int late = victim == 8 ? 7 : 8;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == late) {
        nap(0.98 + victim * 0.01);
        kill(me->pids[victim], SIGKILL);
    }
    EXPECT(me, world_sum_until_failure(comm), COLL_ERR_PEER, "rank ");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_rank_may_die_while_it_is_asked)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(9, one_dies, new_scene(_i), DEADLINE), 1);
}
END_TEST

/* ---- all stand still -------------------------------------------------------- */

/* As by Ctrl-Z, or where their container is paused: rank 2 stops both others for
 * longer than their deadline, and rank 1 has to be waited for after that, too. */
static int stand_still(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    float x = (float)me->rank;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    world_hurry(comm, me->rank == 2 ? DEADLINE : patient(1.5));
    if (me->rank == 2) {
        nap(0.3);
        for (int r = 0; r < 2; r++)
            kill(me->pids[r], SIGSTOP);
        nap(patient(1.5) + 0.5);
        for (int r = 0; r < 2; r++)
            kill(me->pids[r], SIGCONT);
    } else if (me->rank == 1) {
        nap(0.6);
        nap(0.4);
        WORLD_CHECK(me, !coll_send(&x, 1, COLL_F32, 0, comm, NULL));
    } else {
        WORLD_CHECK(me, !coll_recv(&x, 1, COLL_F32, 1, comm, NULL));
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_job_that_was_stopped_goes_on)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, stand_still, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ask");
    TCase *c = tcase_create("ask");

    tcase_set_timeout(c, 4 * DEADLINE);
    tcase_add_loop_test(c, ranks_that_wait_long_ask_little, 0, 2);
    tcase_add_test(c, nobody_is_asked_while_data_moves);
    tcase_add_loop_test(c, a_test_never_waits_for_answers, 0, 2);
    tcase_add_loop_test(c, a_test_never_waits_for_news, 0, 2);
    tcase_add_loop_test(c, nine_ranks_learn_who_disagrees, 0, 8);
    tcase_add_loop_test(c, a_stopped_rank_in_the_tree_is_named_on_both_sides, 0,
                        getenv("TEST_QUICK") ? 3 : 8);
    tcase_add_loop_test(c, a_rank_may_die_while_it_is_asked, 0, 9);
    tcase_add_loop_test(c, a_job_that_was_stopped_goes_on, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
