/* SPDX-License-Identifier: BSD-3-Clause */
/* test_death.c - ranks that are killed and groups that are aborted: every other
 * rank hears of it, soon and once. */
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/this_host.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT patient(20)

/* ---- deaths ------------------------------------------------------------- */

struct scene {
    int victims[3], n_victims;
    int holds_sockets; /* the victim has a child that keeps them open */
    atomic_int n_ready;
    atomic_int is_over;
    pid_t holder;
    struct world_notice notices[WORLD_MAX];
};

static int is_victim(const struct scene *scene, int rank)
{
    for (int i = 0; i < scene->n_victims; i++)
        if (scene->victims[i] == rank)
            return 1;
    return 0;
}

/* A child made by the bare system call, past every handler of fork(). */
static void hold_sockets(struct scene *scene)
{
    pid_t pid = (pid_t)syscall(SYS_fork);

    if (!pid) {
        while (!atomic_load(&scene->is_over))
            usleep(1000);
        _exit(0);
    }
    scene->holder = pid;
}

static int rank_waits_for_death(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct world_notice *notice = &scene->notices[w->rank];
    struct coll__ctrl_events events = world_events(notice);
    struct coll__ctrl *ctrl;
    int status;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    if (is_victim(scene, w->rank) && scene->holds_sockets)
        hold_sockets(scene);
    atomic_fetch_add(&scene->n_ready, 1);
    if (is_victim(scene, w->rank))
        for (;;)
            pause();
    world_await(notice, TIMEOUT);
    status = coll__ctrl_close(ctrl, 1, TIMEOUT);
    return status != COLL_ERR_PEER || notice->status != COLL_ERR_PEER ||
           world_n_calls(notice) != 1;
}

/* Check that the text names a victim and how it went: "died" says that nobody waited for
 * it to fall silent. */
static int names_victim(const struct scene *scene, const pid_t *pids,
                        const char *text)
{
    char want[64];

    for (int i = 0; i < scene->n_victims; i++) {
        snprintf(want, sizeof(want), "rank %d (pid %d on ", scene->victims[i],
                 (int)pids[scene->victims[i]]);
        if (strstr(text, want) && strstr(text, " died"))
            return 1;
    }
    return 0;
}

static void kill_and_check(struct scene *scene, int size)
{
    pid_t pids[WORLD_MAX];
    double end = coll__now() + TIMEOUT;

    world_start(size, rank_waits_for_death, scene, pids);
    while (atomic_load(&scene->n_ready) < size) {
        ck_assert(coll__now() < end);
        world_nap(0.001);
    }
    for (int i = 0; i < scene->n_victims; i++)
        kill(pids[scene->victims[i]], SIGKILL);
    for (int r = 0; r < size; r++) {
        if (is_victim(scene, r))
            continue;
        ck_assert_int_eq(world_await(&scene->notices[r], TIMEOUT), 1);
        ck_assert_msg(names_victim(scene, pids, scene->notices[r].text), "%s",
                      scene->notices[r].text);
    }
    atomic_store(&scene->is_over, 1);
    ck_assert_int_eq(world_wait(size, pids), scene->n_victims);
}

START_TEST(the_death_of_any_rank_is_noticed_by_all)
{
    struct scene *scene = world_shared(sizeof(*scene));

    scene->victims[0] = _i;
    scene->n_victims = 1;
    kill_and_check(scene, 8);
}
END_TEST

START_TEST(the_death_of_several_is_noticed_by_all)
{
    struct scene *scene = world_shared(sizeof(*scene));

    *scene = (struct scene){.victims = {0, 4, 6}, .n_victims = 3};
    kill_and_check(scene, 9);
}
END_TEST

START_TEST(a_child_that_holds_the_sockets_hides_no_death)
{
    struct scene *scene = world_shared(sizeof(*scene));

    *scene = (struct scene){.victims = {2}, .n_victims = 1};
    scene->holds_sockets = 1;
    kill_and_check(scene, 4);
}
END_TEST

/* The victim forks in the ordinary way: the child closes what is not its. */
static int rank_forks_and_dies(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct world_notice *notice = &scene->notices[w->rank];
    struct coll__ctrl_events events = world_events(notice);
    struct coll__ctrl *ctrl;
    pid_t child;
    int bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    if (w->rank == 1) {
        child = fork();
        if (!child) {
            char in = 0, out[4];

            /* The child may end what it inherited, and no more. */
            bad =
                coll__ctrl_allgather(ctrl, &in, 1, out, 1) != COLL_ERR_INVALID;
            bad |= coll__ctrl_close(ctrl, 1, 1) != COLL_OK;
            _exit(bad);
        }
        waitpid(child, &bad, 0);
        if (bad)
            return 1;
    }
    bad = world_exchange(ctrl, w->rank, w->size, 8, 0);
    bad |= coll__ctrl_close(ctrl, 1, TIMEOUT);
    return bad || world_n_calls(notice);
}

START_TEST(a_forked_child_disturbs_nobody)
{
    struct scene *scene = world_shared(sizeof(*scene));

    ck_assert_int_eq(world_forks(4, rank_forks_and_dies, scene), 0);
}
END_TEST

/* ---- aborts ------------------------------------------------------------- */

static int rank_aborts(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    int aborter = *(int *)w->arg, status, bad;
    char in = 0, out[16];

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    status = coll__ctrl_allgather(ctrl, &in, 1, out, TIMEOUT); /* all are in */
    if (w->rank == aborter) {
        coll__ctrl_abort(ctrl, COLL_ERR_ABORTED, "no more money");
        coll__ctrl_abort(ctrl, COLL_ERR_ABORTED, "again");
        bad = 0;
    } else {
        if (!status)
            status = coll__ctrl_allgather(ctrl, &in, 1, out, TIMEOUT);
        bad = status != COLL_ERR_ABORTED ||
              strcmp(coll_last_error(), "no more money");
        world_await(&notice, TIMEOUT);
        bad |= world_n_calls(&notice) != 1 ||
               notice.status != COLL_ERR_ABORTED ||
               strcmp(notice.text, "no more money");
    }
    coll__ctrl_close(ctrl, 1, TIMEOUT);
    return bad || (w->rank == aborter && world_n_calls(&notice));
}

START_TEST(an_abort_reaches_every_other_rank)
{
    ck_assert_int_eq(world_threads(7, rank_aborts, &_i), 0);
}
END_TEST

/* Who aborts and ends at once is known by what it said, not by its end. */
static int rank_aborts_and_exits(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    world_exchange(ctrl, w->rank, w->size, 1, 0); /* all are in */
    if (w->rank == 2) {
        coll__ctrl_abort(ctrl, COLL_ERR_ABORTED, "bad loss");
        coll__ctrl_close(ctrl, 0, TIMEOUT);
        _exit(0);
    }
    world_await(&notice, TIMEOUT);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    return strcmp(notice.text, "bad loss") != 0;
}

START_TEST(the_reason_goes_before_the_death)
{
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(world_forks(6, rank_aborts_and_exits, NULL), 0);
}
END_TEST

/* Make one rank of a tree, with the others to be processes that have ended. */
static struct coll__ctrl *tree_of_gone_peers(int rank, int size,
                                             struct world_notice *notice)
{
    struct coll__ctrl_events events = world_events(notice);
    struct coll__ctrl *ctrl = coll__ctrl_new(rank, size, &events);
    struct ctrl_peer self = {.pid = (uint64_t)getpid()};

    coll__host_id(self.host);
    self.pid_ns = coll__host_inode("/proc/self/ns/pid");
    for (int r = 0; r < size; r++) {
        pid_t pid = r == rank ? getpid() : fork();

        if (!pid)
            _exit(0);
        ck_assert(r == rank || waitpid(pid, NULL, 0) == pid);
        ctrl->peers[r] = self;
        ctrl->peers[r].pid = (uint64_t)pid;
    }
    ck_assert_int_eq(coll__ctrl_begin(ctrl), COLL_OK);
    ctrl->is_open = 1;
    return ctrl;
}

/* Its last words may have come and not been read when its end is noticed. */
START_TEST(the_reason_goes_before_a_death_that_is_noticed_late)
{
    struct ctrl_reason reason = {COLL_ERR_ABORTED, NOBODY, "bad loss"};
    struct world_notice notice = {0};
    struct coll__ctrl *ctrl = tree_of_gone_peers(0, 2, &notice);

    coll__reactor_lock();
    coll__ctrl_watch(ctrl);
    ck_assert_int_eq(ctrl->failure.status, COLL_OK);
    coll__ctrl_fail(ctrl, &reason, 1);
    coll__reactor_unlock();
    ck_assert_int_eq(world_await(&notice, TIMEOUT), 1);
    ck_assert_str_eq(notice.text, "bad loss");
    coll__ctrl_close(ctrl, 0, TIMEOUT);
}
END_TEST

START_TEST(a_death_that_is_noticed_late_is_one)
{
    struct world_notice notice = {0};
    struct coll__ctrl *ctrl = tree_of_gone_peers(0, 2, &notice);

    coll__reactor_lock();
    coll__ctrl_watch(ctrl);
    coll__reactor_unlock();
    ck_assert_int_eq(world_await(&notice, TIMEOUT), 1);
    ck_assert_int_eq(notice.status, COLL_ERR_PEER);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
}
END_TEST

/* Of what ranks that are no neighbours said last, their neighbours tell. */
START_TEST(a_neighbour_speaks_first_of_deaths)
{
    struct world_notice notice = {0};
    struct coll__ctrl *ctrl = tree_of_gone_peers(3, 4, &notice);

    coll__reactor_lock();
    coll__ctrl_watch(
        ctrl); /* 0, 1, and then 2, through which it hears of them */
    coll__reactor_unlock();
    ck_assert_int_eq(world_await(&notice, TIMEOUT), 1);
    ck_assert_ptr_ne(strstr(notice.text, "rank 2 "), NULL);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
}
END_TEST

START_TEST(a_death_is_told_where_no_neighbour_tells)
{
    struct world_notice notice = {0};
    struct coll__ctrl *ctrl = tree_of_gone_peers(3, 4, &notice);

    coll__reactor_lock();
    ctrl->peers[2].pid =
        (uint64_t)getpid(); /* it says nothing, as if stopped */
    coll__ctrl_watch(ctrl);
    coll__reactor_unlock();
    ck_assert_int_eq(world_await(&notice, TIMEOUT), 1);
    ck_assert_ptr_ne(strstr(notice.text, "rank 0 "), NULL);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
}
END_TEST

/* ---- a late reactor ------------------------------------------------------- */

static atomic_int n_ready, n_expired;

static void is_ready(struct coll__source *source, uint32_t events)
{
    (void)events;
    atomic_fetch_add(&n_ready, 1);
    coll__reactor_remove(source);
}

static void has_expired(struct coll__source *source)
{
    atomic_fetch_add(&n_expired, 1);
    coll__reactor_remove(source);
}

/* The thread has been woken, and waits for the lock, when the deadline passes and
 * the byte comes. */
START_TEST(a_late_reactor_looks_what_came_before_it_gives_up)
{
    struct coll__source source = {
        .events = EPOLLIN, .ready = is_ready, .expired = has_expired};
    double end = coll__now() + TIMEOUT;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(coll__reactor_get(), COLL_OK);
    world_nap(0.1); /* until it sleeps */
    coll__reactor_lock();
    source.fd = ends[0];
    source.deadline = coll__now() + 0.1;
    ck_assert_int_eq(coll__reactor_add(&source), COLL_OK);
    world_nap(0.2);
    ck_assert_int_eq(write(ends[1], "", 1), 1);
    coll__reactor_unlock();
    while (!atomic_load(&n_ready) && !atomic_load(&n_expired) &&
           coll__now() < end)
        world_nap(0.001);
    ck_assert_int_eq(atomic_load(&n_ready), 1);
    ck_assert_int_eq(atomic_load(&n_expired), 0);
    coll__reactor_put();
}
END_TEST

/* ---- no death ------------------------------------------------------------ */

#define STOPPED 12.0            /* s, longer than a host may be silent */
#define MUCH ((size_t)16 << 20) /* more than sockets hold */

/* Rank 0 is stopped while the other one has much to say to it. */
static int rank_stops(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct coll__ctrl_events events = world_events(&scene->notices[w->rank]);
    struct coll__ctrl *ctrl;
    int bad;

    if (world_open(w, &events, 4 * TIMEOUT, &ctrl))
        return 1;
    if (!w->rank) {
        atomic_fetch_add(&scene->n_ready, 1);
        raise(SIGSTOP);
    }
    while (!atomic_load(&scene->n_ready))
        world_nap(0.001);
    bad = world_exchange(ctrl, w->rank, w->size, MUCH, 0);
    bad |= coll__ctrl_close(ctrl, 1, TIMEOUT);
    return bad || world_n_calls(&scene->notices[w->rank]);
}

START_TEST(a_stopped_rank_is_not_taken_for_a_silent_host)
{
    struct scene *scene = world_shared(sizeof(*scene));
    double end = coll__now() + TIMEOUT;
    pid_t pids[WORLD_MAX];

    world_start(2, rank_stops, scene, pids);
    while (!atomic_load(&scene->n_ready) && coll__now() < end)
        world_nap(0.001);
    world_nap(STOPPED);
    kill(pids[0], SIGCONT);
    ck_assert_int_eq(world_wait(2, pids), 0);
}
END_TEST

static Suite *death_suite(void)
{
    Suite *suite = suite_create("death");
    TCase *tc = suite_case(suite, "death", 120);

    tcase_add_loop_test(tc, the_death_of_any_rank_is_noticed_by_all, 0, 8);
    tcase_add_test(tc, the_death_of_several_is_noticed_by_all);
    tcase_add_test(tc, a_child_that_holds_the_sockets_hides_no_death);
    tcase_add_test(tc, a_forked_child_disturbs_nobody);
    tc = suite_case(suite, "abort", 120);
    tcase_add_loop_test(tc, an_abort_reaches_every_other_rank, 0, 7);
    tcase_add_test(tc, the_reason_goes_before_the_death);
    tcase_add_test(tc, the_reason_goes_before_a_death_that_is_noticed_late);
    tcase_add_test(tc, a_death_that_is_noticed_late_is_one);
    tcase_add_test(tc, a_neighbour_speaks_first_of_deaths);
    tcase_add_test(tc, a_death_is_told_where_no_neighbour_tells);
    tcase_add_test(tc, a_late_reactor_looks_what_came_before_it_gives_up);
    tc = suite_case(suite, "no_death", 120);
    if (!getenv("TEST_QUICK"))
        tcase_add_test(tc, a_stopped_rank_is_not_taken_for_a_silent_host);
    return suite;
}

int main(void)
{
    return suite_run(death_suite());
}
