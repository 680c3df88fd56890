/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ucx_end.c - communicators over UCX end without harm to any rank that is
 * alive: others may be slow, stopped or gone at any point of their own end.
 *
 * UCX's calls are met half way: they are counted once a rank has begun to
 * leave, and before the n-th one that the case names it stops itself.  The test
 * lets it go on after a while.
 */
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "transports/ucx.h"
#include "lib/util/util.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE 120
#define STALL_SECONDS 1.6

/* ---- a rank that stops in the midst of UCX's calls ----------------------- */

enum call { SEND, FLUSH, CLOSE, DESTROY, PROGRESS };

struct stall {
    enum call call;
    int n; /* the n-th such call, from 1 */
    int rank;
};

/* Shared by all: who has stopped, 0: nobody. */
static atomic_int *stopped;

/* Of this process: what is still to be stalled, NULL: nothing. */
static const struct stall *due;
static int n_calls;

static void maybe_stop(enum call call)
{
    if (!due || due->call != call || ++n_calls < due->n)
        return;
    due = NULL;
    atomic_store(stopped, getpid());
    raise(SIGSTOP);
}

static struct ucx_entries real; /* UCX's own calls */

static ucs_status_ptr_t send_met(ucp_ep_h ep, unsigned id, const void *header,
                                 size_t header_length, const void *buffer,
                                 size_t count, const ucp_request_param_t *param)
{
    maybe_stop(SEND);
    return real.ucp_am_send_nbx(ep, id, header, header_length, buffer, count,
                                param);
}

static ucs_status_ptr_t flush_met(ucp_ep_h ep, const ucp_request_param_t *param)
{
    maybe_stop(FLUSH);
    return real.ucp_ep_flush_nbx(ep, param);
}

static ucs_status_ptr_t close_met(ucp_ep_h ep, const ucp_request_param_t *param)
{
    maybe_stop(CLOSE);
    return real.ucp_ep_close_nbx(ep, param);
}

static void destroy_met(ucp_worker_h worker)
{
    maybe_stop(DESTROY);
    real.ucp_worker_destroy(worker);
}

static unsigned progress_met(ucp_worker_h worker)
{
    maybe_stop(PROGRESS);
    return real.ucp_worker_progress(worker);
}

/* Have libcoll call these. */
static void meet_calls(void)
{
    ck_assert_ptr_null(coll__ucx_load());
    real = coll__ucx;
    coll__ucx.ucp_am_send_nbx = send_met;
    coll__ucx.ucp_ep_flush_nbx = flush_met;
    coll__ucx.ucp_ep_close_nbx = close_met;
    coll__ucx.ucp_worker_destroy = destroy_met;
    coll__ucx.ucp_worker_progress = progress_met;
}

/* A process of its own (the sanitizer's ranks may not be forked beside threads):
 * let those that have stopped go on. */
static pid_t start_waker(void)
{
    pid_t pid = fork(), who;

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        usleep(1000);
        if (!(who = atomic_load(stopped)))
            continue;
        usleep((useconds_t)(STALL_SECONDS * 1e6));
        atomic_store(stopped, 0);
        kill(who, SIGCONT);
    }
}

/* ---- a slow clock ---------------------------------------------------------- */

#define SLOWNESS 10000 /* times */

/* When the clock began to be slow, ns; 0: it goes as it should. */
static atomic_llong slow_since;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    long long since = atomic_load(&slow_since), ns;
    int rc = __real_clock_gettime(clock, time);

    if (rc || !since || clock != CLOCK_MONOTONIC)
        return rc;
    ns = time->tv_sec * 1000000000LL + time->tv_nsec;
    ns = since + (ns - since) / SLOWNESS;
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    return 0;
}

/* End the communicator while time hardly passes: who waited here until a limit would
 * still wait when the test's own has passed. */
static int destroy_at_once(struct coll_comm *comm)
{
    struct timespec now;
    int rc;

    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&slow_since, now.tv_sec * 1000000000LL + now.tv_nsec);
    rc = coll_comm_destroy(comm);
    atomic_store(&slow_since, 0);
    return rc;
}

/* ---- ranks that leave ---------------------------------------------------- */

static int leave(struct world_rank *me)
{
    const struct stall *stall = me->arg;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !world_sum(comm, 20));
    if (me->rank == stall->rank)
        due = stall;
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

static const struct stall stalls[] = {
    {SEND, 1, 1},     {SEND, 3, 1},      {FLUSH, 1, 1},   {FLUSH, 3, 0},
    {CLOSE, 1, 1},    {CLOSE, 2, 0},     {DESTROY, 1, 2}, {PROGRESS, 1, 1},
    {PROGRESS, 5, 2}, {PROGRESS, 40, 1},
};

/* _i: which call of which rank. */
START_TEST(a_rank_that_stalls_while_it_leaves_harms_nobody)
{
    pid_t waker = start_waker();
    int n_failed = world_fork(4, leave, (void *)&stalls[_i], DEADLINE);

    kill(waker, SIGKILL);
    waitpid(waker, NULL, 0);
    ck_assert_int_eq(n_failed, 0);
}
END_TEST

/* Ranks 0 and 1 have a communicator left, and compute; the others end. */
static int go_on(struct world_rank *me)
{
    struct coll_comm *all, *some;

    WORLD_CHECK(
        me, !world_divide(me, me->rank < 2 ? 0 : COLL_NO_COLOR, &all, &some));
    WORLD_CHECK(me, !coll_comm_destroy(all));
    if (me->rank >= 2) {
        world_through(me);
        return 0;
    }
    WORLD_CHECK(me, world_await_through(me, me->size - 2, DEADLINE / 2));
    WORLD_CHECK(me, !world_sum(some, 10));
    WORLD_CHECK(me, !coll_comm_destroy(some));
    return 0;
}

START_TEST(who_goes_on_delays_nobody_who_ends)
{
    ck_assert_int_eq(world_fork(4, go_on, NULL, DEADLINE), 0);
}
END_TEST

#define N_CHAIN 6

/* Each communicator is of one rank fewer, whose worker ends with the one before,
 * while the others wait for each other elsewhere and do not let UCX work. */
static int end_in_turn(struct world_rank *me)
{
    struct coll_comm *comms[N_CHAIN] = {NULL};
    int n = me->rank + 1 < N_CHAIN ? me->rank + 1 : N_CHAIN - 1;

    WORLD_CHECK(me, !coll_comm_create_oob(&comms[0], &me->oob, NULL));
    for (int i = 1; i < N_CHAIN - 1 && i <= me->rank + 1; i++)
        WORLD_CHECK(me, !coll_comm_split(comms[i - 1],
                                         me->rank >= i ? 0 : COLL_NO_COLOR, 0,
                                         &comms[i]));
    WORLD_CHECK(me, !coll_barrier(comms[0], NULL));
    for (int i = 0; i < n; i++)
        WORLD_CHECK(me, !destroy_at_once(comms[i]));
    return 0;
}

START_TEST(who_ends_in_turn_waits_for_nobody_who_goes_on)
{
    ck_assert_int_eq(world_fork(N_CHAIN, end_in_turn, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 4 dies, and with it `all`; ranks 0 and 1 end a communicator of their own
 * in order, while 2 and 3 have another one, and compute. */
static int end_after_a_death(struct world_rank *me)
{
    struct coll_comm *all, *some;

    WORLD_CHECK(me, !world_divide(me, me->rank / 2, &all, &some));
    if (me->rank == 4)
        kill(getpid(), SIGKILL);
    WORLD_CHECK(me, world_sum_until_failure(all) == COLL_ERR_PEER);
    WORLD_CHECK(me, coll_comm_destroy(all) == COLL_ERR_PEER);
    if (me->rank >= 2)
        WORLD_CHECK(me, world_await_through(me, 2, DEADLINE / 2));
    else
        WORLD_CHECK(me, !coll_barrier(some, NULL));
    WORLD_CHECK(me, !destroy_at_once(some));
    world_through(me);
    return 0;
}

START_TEST(who_ends_after_a_death_waits_for_nobody_who_lost_as_much)
{
    ck_assert_int_eq(world_fork(5, end_after_a_death, NULL, DEADLINE), 1);
}
END_TEST

/* The last communicator ends the worker; the next one has a new one. */
static int begin_anew(struct world_rank *me)
{
    for (int i = 0; i < 6; i++) {
        struct coll_comm *comm = world_join(me);

        WORLD_CHECK(me, comm && !world_sum(comm, 1));
        WORLD_CHECK(me, !coll_comm_destroy(comm));
    }
    return 0;
}

START_TEST(after_the_last_communicator_there_may_be_another)
{
    ck_assert_int_eq(world_fork(3, begin_anew, NULL, DEADLINE), 0);
}
END_TEST

/* ---- communicators that come and go under load --------------------------- */

static int dup_and_destroy(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *copy;

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 25; i++) {
        WORLD_CHECK(me, !coll_comm_dup(comm, &copy));
        WORLD_CHECK(me, !world_sum(copy, 1));
        WORLD_CHECK(me, !coll_comm_destroy(copy));
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

static void burn(pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (!(pids[i] = fork()))
            for (;;)
                ;
}

START_TEST(communicators_come_and_go_under_load)
{
    pid_t pids[6];
    int n_failed;

    burn(pids, ARRAY_LEN(pids));
    n_failed = world_fork(6, dup_and_destroy, NULL, DEADLINE);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    ck_assert_int_eq(n_failed, 0);
}
END_TEST

static void set_up(void)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    meet_calls();
    stopped = mmap(NULL, sizeof(*stopped), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stopped, MAP_FAILED);
}

int main(void)
{
    Suite *suite = suite_create("ucx_end");
    TCase *tcase = suite_case(suite, "leaving", DEADLINE + 20);

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, a_rank_that_stalls_while_it_leaves_harms_nobody,
                        0, (int)ARRAY_LEN(stalls));
    tcase_add_test(tcase, who_goes_on_delays_nobody_who_ends);
    tcase_add_test(tcase, who_ends_in_turn_waits_for_nobody_who_goes_on);
    tcase_add_test(tcase,
                   who_ends_after_a_death_waits_for_nobody_who_lost_as_much);
    tcase_add_test(tcase, after_the_last_communicator_there_may_be_another);
    tcase_add_test(tcase, communicators_come_and_go_under_load);
    return suite_run(suite);
}
