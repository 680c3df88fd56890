/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fault.c - what goes wrong among ranks ends soon, on every rank, with a
 * sentence that names the culprit; and nothing is left behind. */
#include "tests/support/patience.h"
#include "tests/support/seclude.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/comm/comm.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEADLINE 40

/* Join, meet in barrier #1, and have so short a deadline from then on: joining takes what
 * it takes, on a machine that is busy. */
static struct coll_comm *join_for(struct world_rank *me, double timeout)
{
    struct coll_comm *comm = world_join(me);

    if (!comm || world_barrier(me, comm))
        return NULL;
    world_hurry(comm, timeout);
    return comm;
}

static int x[1 << 20], y[1 << 22];

/* ---- deadlines ----------------------------------------------------------- */

/* Others may be late as well, on a busy machine; the lowest is named first. */
static int one_is_late(struct world_rank *me)
{
    struct coll_comm *comm = join_for(me, 1);

    WORLD_CHECK(me, comm);
    if (me->rank == 0)
        world_await_failure(comm, 20);
    EXPECT(me, coll_allreduce(x, y, 10, COLL_I32, COLL_SUM, comm, NULL),
           COLL_ERR_TIMEOUT, "allreduce #2 (10 i32, sum) did not end within 1");
    WORLD_CHECK(me, strstr(coll_last_error(), "not arrived: rank 0"));
    WORLD_CHECK(me, strstr(coll_last_error(), "after barrier #1"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(a_deadline_names_the_rank_that_did_not_come)
{
    setenv("COLL_TRANSPORTS", world_net(_i ? "self," : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(4, one_is_late, NULL, DEADLINE), 0);
}
END_TEST

static int request_deadline(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_BARRIER};
    struct coll_request *request;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    world_meet(me); /* no request can be made once the deadline has passed */
    if (me->rank == 1) {
        WORLD_CHECK(me, world_await_failure(comm, 20) == COLL_ERR_TIMEOUT);
        EXPECT(me, coll_start(request), COLL_ERR_TIMEOUT, "within 0.5 s");
    } else {
        WORLD_CHECK(me, coll_start(request) == COLL_OK);
        EXPECT(me, coll_request_destroy(request), COLL_ERR_INVALID,
               "still runs");
        EXPECT(me, coll_wait(request, 0.5), COLL_ERR_TIMEOUT,
               "not arrived: rank 1");
    }
    WORLD_CHECK(me, coll_request_destroy(request) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(a_request_has_a_deadline_of_its_own)
{
    ck_assert_int_eq(world_fork(2, request_deadline, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 0 polls, waits for the rest, and polls the next operation past the
 * deadline that the first one had; rank 1 comes a little later to each. */
static int poll_and_wait(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_BROADCAST,
                             .root = 1,
                             .in = x,
                             .out = y,
                             .count = 1};
    double deadline = patient(0.75);
    struct coll_request *request;
    struct coll_comm *comm = join_for(me, deadline);
    int rc = COLL_IN_PROGRESS;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    for (int n = 0; n < 2; n++) {
        if (me->rank)
            usleep((useconds_t)(0.3e6 * deadline));
        WORLD_CHECK(me, !coll_start(request));
        for (double end = coll__now() + (n ? 2 * deadline : 0.2);
             coll__now() < end;)
            if ((rc = coll_test(request)) != COLL_IN_PROGRESS)
                break;
        WORLD_CHECK(me, n ? rc == COLL_OK : !coll_wait(request, 0));
        usleep(n ? 0 : (useconds_t)(0.9e6 * deadline));
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(each_polled_operation_has_the_whole_deadline)
{
    ck_assert_int_eq(world_fork(2, poll_and_wait, NULL, DEADLINE), 0);
}
END_TEST

static int one_is_stopped(struct world_rank *me)
{
    struct coll_comm *comm = join_for(me, 1);

    WORLD_CHECK(me, comm);
    if (me->rank == 0) {
        raise(SIGSTOP);
        return 0;
    }
    patient_stop(me->pids[0]);
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_TIMEOUT,
           "no answer from rank 0");
    world_through(me);
    if (me->rank == 1) {
        world_await_through(me, 2, 20);
        kill(me->pids[0], SIGKILL); /* it ends the test */
    }
    return 0;
}

START_TEST(a_stopped_rank_is_named_as_silent)
{
    ck_assert_int_eq(world_fork(3, one_is_stopped, NULL, DEADLINE), 1);
}
END_TEST

/* ---- death --------------------------------------------------------------- */

/* Allreduces without end; one rank is killed from another in the middle. */
static int one_is_killed(struct world_rank *me)
{
    int victim = *(int *)me->arg, killer = victim == 0 ? 1 : 0, rc;
    struct coll_comm *comm = world_join(me);
    double begin;
    char words[32];

    WORLD_CHECK(me, comm);
    world_meet(me); /* who still joins would fail to */
    begin = coll__now();
    do {
        if (me->rank == killer && coll__now() - begin > 0.3)
            kill(me->pids[victim], SIGKILL);
        rc = coll_allreduce(x, y, 1 << 18, COLL_I32, COLL_SUM, comm, NULL);
    } while (rc == COLL_OK);
    snprintf(words, sizeof(words), "rank %d", victim);
    EXPECT(me, rc, COLL_ERR_PEER, words);
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_PEER, words);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_killed_rank_is_named_on_every_rank_within_a_second)
{
    int victim = _i % 4, is_alone = seclude();
    char left[300] = "";

    setenv("COLL_TRANSPORTS", world_net(_i >= 4 ? "self," : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(4, one_is_killed, &victim, DEADLINE), 1);
    if (is_alone)
        secluded_leftover(left, sizeof(left));
    ck_assert_str_eq(left, "");
}
END_TEST

/* A rank that ends without a word, while others compute. */
static int one_leaves(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 1)
        _exit(0);
    EXPECT(me, world_await_failure(comm, 1), COLL_ERR_PEER, "rank 1");
    return 0;
}

START_TEST(a_rank_that_ends_is_noticed_while_others_compute)
{
    ck_assert_int_eq(world_fork(5, one_leaves, NULL, DEADLINE), 0);
}
END_TEST

static int abort_all(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    world_meet(me);
    if (me->rank == 2) {
        usleep(200000);
        WORLD_CHECK(me, coll_comm_abort(comm, "loss is NaN") == COLL_OK);
    }
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_ABORTED,
           "rank 2 aborted: loss is NaN");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_ABORTED);
    return 0;
}

START_TEST(an_abort_ends_every_wait)
{
    ck_assert_int_eq(world_fork(4, abort_all, NULL, DEADLINE), 0);
}
END_TEST

static void *abort_it(void *comm)
{
    return (void *)(size_t)coll_comm_abort(comm, "loss is NaN");
}

/* While a thread is in coll_comm_abort(), another one hears of it and ends the
 * communicator.  The lock keeps the first from telling the other ranks until then. */
static int abort_and_destroy(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    pthread_t thread;
    void *rc;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 1) {
        coll__reactor_lock();
        WORLD_CHECK(me, !pthread_create(&thread, NULL, abort_it, comm));
        while (!coll_comm_async_error(comm))
            ;
        coll__reactor_unlock();
    } else {
        WORLD_CHECK(me, world_await_failure(comm, DEADLINE));
    }
    EXPECT(me, coll_comm_destroy(comm), COLL_ERR_ABORTED,
           "rank 1 aborted: loss is NaN");
    if (me->rank == 1)
        WORLD_CHECK(me, !pthread_join(thread, &rc) && !rc);
    return 0;
}

START_TEST(a_communicator_may_end_as_soon_as_it_fails)
{
    ck_assert_int_eq(world_fork(3, abort_and_destroy, NULL, DEADLINE), 0);
}
END_TEST

/* ---- want ---------------------------------------------------------------- */

/* Which rank (-1: each) may open how many descriptors more than it has. */
struct want {
    int rank, n_more;
    int is_by_id; /* over a rendezvous, else by the caller's allgather */
};

static char words[4096]; /* of the first call that failed */

static void allow_more(int n_more)
{
    struct rlimit limit;
    rlim_t n = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (; n_more > 0 && n < limit.rlim_cur; n++)
        n_more -= fcntl((int)n, F_GETFD) < 0;
    limit.rlim_cur = n;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int create(struct world_rank *me, struct coll_comm **comm)
{
    const struct want *want = me->arg;
    struct coll_unique_id id = {0}, all[8];

    if (!me->rank && coll_get_unique_id(&id))
        return COLL_ERR_INTERNAL;
    me->oob.allgather(me->oob.arg, &id, all, sizeof(id));
    if (want->rank < 0 || want->rank == me->rank)
        allow_more(want->n_more);
    return want->is_by_id
               ? coll_comm_create(comm, me->size, all, me->rank, NULL)
               : coll_comm_create_oob(comm, &me->oob, NULL);
}

/* The communicator works, and others can be made from it, or cannot. */
static int use(struct coll_comm *comm)
{
    struct coll_comm *more[2] = {NULL, NULL};
    int rc = coll_barrier(comm, NULL);

    if (!rc)
        rc = coll_comm_dup(comm, &more[0]);
    if (!rc)
        rc = coll_comm_split(comm, coll_comm_rank(comm) % 2, 0, &more[1]);
    for (int i = 0; i < 2 && !rc; i++)
        rc = coll_barrier(more[i], NULL);
    if (rc)
        snprintf(words, sizeof(words), "%s", coll_last_error());
    for (int i = 1; i >= 0; i--)
        coll_comm_destroy(more[i]);
    return rc;
}

/* Rank 0 waits a second for the others and tells them why it has failed; on a busy
 * machine another rank may come later. */
static int is_told(const struct want *want, const struct world_rank *me)
{
    return strstr(words, "ulimit -n") ||
           (want->is_by_id && want->rank != me->rank &&
            strstr(words, "does not wait for it any more"));
}

static int wants_descriptors(struct world_rank *me)
{
    const struct want *want = me->arg;
    struct coll_comm *comm = NULL;
    char mine = 0, all[8];
    int rc = create(me, &comm), is_made = rc == COLL_OK;

    if (is_made)
        rc = use(comm);
    else
        snprintf(words, sizeof(words), "%s", coll_last_error());
    WORLD_CHECK(me, rc != COLL_ERR_TIMEOUT);
    if (rc && (!is_made || want->rank == me->rank) && !is_told(want, me)) {
        fprintf(stderr, "rank %d may open %d more: %s\n", want->rank,
                want->n_more, words);
        return 1;
    }
    me->oob.allgather(me->oob.arg, &mine, all, 1); /* nobody ends before */
    coll_comm_destroy(comm);
    return 0;
}

/* _i: by which way, and how many ranks.  From what is enough to tell the others to what is enough
 * for all that there is to do. */
START_TEST(who_wants_descriptors_says_so_and_so_do_the_others)
{
    static const int sizes[] = {2, 5};
    struct want want = {.is_by_id = _i % 2};
    int size = sizes[_i / 2];

    setenv("COLL_TRANSPORTS", "self,shm", 1);
    patient_timeout(15);
    for (want.rank = -1; want.rank < size; want.rank++)
        for (want.n_more = want.rank > 0 || !want.is_by_id ? 1 : 3;
             want.n_more < 14; want.n_more += 3)
            ck_assert(!world_fork(size, wants_descriptors, &want, DEADLINE));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault");
    TCase *c = tcase_create("fault");

    tcase_set_timeout(c, 2 * DEADLINE + 20);
    tcase_add_loop_test(c, a_deadline_names_the_rank_that_did_not_come, 0, 2);
    tcase_add_test(c, a_request_has_a_deadline_of_its_own);
    tcase_add_test(c, each_polled_operation_has_the_whole_deadline);
    tcase_add_test(c, a_stopped_rank_is_named_as_silent);
    tcase_add_loop_test(c, a_killed_rank_is_named_on_every_rank_within_a_second,
                        0, 8);
    tcase_add_test(c, a_rank_that_ends_is_noticed_while_others_compute);
    tcase_add_test(c, an_abort_ends_every_wait);
    tcase_add_loop_test(c, a_communicator_may_end_as_soon_as_it_fails, 0, 12);
    suite_add_tcase(suite, c);
    c = tcase_create("want");
    tcase_set_timeout(c, 2 * DEADLINE + 20);
    tcase_add_loop_test(c, who_wants_descriptors_says_so_and_so_do_the_others,
                        0, 4);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
