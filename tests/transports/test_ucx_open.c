/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ucx_open.c - how UCX is opened: what it must not use, what it needs, and
 * what the ranks do when one of them is set otherwise, lacks something or is
 * late.
 */
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/topo/topo.h"
#include "lib/util/limit.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "transports/ucx.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60

extern const struct coll__transport coll__transport_ucx;

static int join(struct world_rank *me, struct coll_comm **comm)
{
    return coll_comm_create_oob(comm, &me->oob, NULL);
}

/* ---- names --------------------------------------------------------------- */

/* Say whether this process has mapped what was made with a name, or a key, that
 * outlives it when it is killed before it took that back. */
static int has_named_segments(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;

    while (maps && fgets(line, sizeof(line), maps))
        found |= strstr(line, "/dev/shm/") || strstr(line, "/SYSV");
    if (maps)
        fclose(maps);
    return found;
}

static int look_at_maps(struct world_rank *me)
{
    int is_expected = *(int *)me->arg;
    struct coll_comm *comm = NULL;

    WORLD_CHECK(me, !join(me, &comm));
    WORLD_CHECK(me, !world_sum(comm, 1));
    WORLD_CHECK(me, has_named_segments() == is_expected);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(ucx_makes_no_segments_that_have_names)
{
    int is_expected = 0;

    ck_assert_int_eq(world_fork(3, look_at_maps, &is_expected, DEADLINE), 0);
}
END_TEST

/* The user's own choice of transports stays. */
START_TEST(the_users_choice_of_transports_stays)
{
    int is_expected = 1;

    setenv("UCX_TLS", "all", 1);
    ck_assert_int_eq(world_fork(2, look_at_maps, &is_expected, DEADLINE), 0);
}
END_TEST

/* ---- ranks that differ or are late --------------------------------------- */

static int mesh_of_its_own(struct world_rank *me)
{
    struct coll_comm *comm = NULL;

    if (me->rank == *(int *)me->arg)
        coll__limit_assume(LIMIT_UCX_MESH, 0);
    WORLD_CHECK(me, !join(me, &comm));
    WORLD_CHECK(me, !world_sum(comm, 10));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* _i: the rank that is set otherwise. */
START_TEST(a_rank_may_have_a_mesh_of_its_own)
{
    ck_assert_int_eq(world_fork(3, mesh_of_its_own, &_i, DEADLINE), 0);
}
END_TEST

/* When this rank first lets UCX work, it says that it is through, and stops until two
 * others are, if they ever are.  It ends there, since UCX 1.13 may abort a process that
 * goes on connecting to those that have gone. */
static const struct world_rank *sleeper;

static __typeof__(ucp_worker_progress) *progress;

static unsigned progress_late(ucp_worker_h worker)
{
    if (sleeper) {
        world_through(sleeper);
        world_await_through(sleeper, 3, DEADLINE);
        _exit(0);
    }
    return progress(worker);
}

static void meet_progress(void)
{
    ck_assert_ptr_null(coll__ucx_load());
    progress = coll__ucx.ucp_worker_progress;
    coll__ucx.ucp_worker_progress = progress_late;
}

static int be_late(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .timeout = patient(1)};
    struct coll_comm *comm = NULL;
    int rc;

    if (me->rank == 1)
        sleeper = me;
    rc = coll_comm_create_oob(&comm, &me->oob, &config);
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "rank 1");
    WORLD_CHECK(me, comm == NULL && me->rank != 1);
    world_through(me);
    return 0;
}

START_TEST(the_timeout_of_the_configuration_counts)
{
    ck_assert_int_eq(world_fork(3, be_late, NULL, DEADLINE), 0);
}
END_TEST

static void quit(int number)
{
    (void)number;
    _exit(0);
}

/* The communicator of this process has failed; a second after it was to be. */
static atomic_int failure;

static void *fail_soon(void *arg)
{
    sleep(1);
    atomic_store(&failure, COLL_ERR_PEER);
    return arg;
}

static int gather(void *arg, const void *in, size_t len, void *out)
{
    const struct coll_oob *oob = arg;

    return atomic_load(&failure) ? COLL_ERR_PEER
                                 : oob->allgather(oob->arg, in, out, len);
}

/* Rank 1, which rank 0 waits for, is busy when that one's communicator fails. */
static int wait_for_one(struct world_rank *me)
{
    struct coll__peer peers[2];
    struct coll__tp_env env = {.rank = me->rank,
                               .size = 2,
                               .peers = peers,
                               .allgather = gather,
                               .arg = &me->oob,
                               .timeout = DEADLINE,
                               .failure = &failure};
    struct coll__tp *tp = NULL;
    pthread_t thread;

    signal(SIGUSR1, quit);
    world_meet(me);
    sleeper = me->rank ? me : NULL;
    WORLD_CHECK(me, !coll__topo_self(&peers[me->rank]));
    peers[!me->rank] = peers[me->rank];
    peers[!me->rank].pid = me->pids[!me->rank];
    WORLD_CHECK(me, coll__topo_group(peers, 2) == 1);
    if (!me->rank)
        pthread_create(&thread, NULL, fail_soon, NULL);
    WORLD_CHECK(me, coll__transport_ucx.open(&env, &tp) == COLL_ERR_PEER);
    pthread_join(thread, NULL);
    kill(me->pids[1], SIGUSR1);
    _exit(0);
}

START_TEST(a_failure_ends_the_wait_for_one_that_is_busy)
{
    ck_assert_int_eq(world_fork(2, wait_for_one, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 3 dies, of the whole alone, while rank 1 of the part is busy; the ranks of
 * the part were not connected before. */
static int lose_one_of_the_whole(struct world_rank *me)
{
    struct coll_comm *comm = NULL, *part = NULL;
    int rc;

    coll__limit_assume(LIMIT_UCX_MESH, 3);
    WORLD_CHECK(me, !join(me, &comm));
    sleeper = me->rank == 1 ? me : NULL;
    rc = coll_comm_split(comm, me->rank == 3, 0, &part);
    if (me->rank == 3) {
        world_await_through(me, 1, DEADLINE); /* rank 1 is busy */
        _exit(0);
    }
    WORLD_CHECK(me, rc == COLL_ERR_PEER && me->rank != 1);
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 3"));
    world_through(me); /* rank 1 waits for both */
    _exit(0);
}

START_TEST(a_failure_of_the_whole_ends_the_wait_in_a_part)
{
    ck_assert_int_eq(world_fork(4, lose_one_of_the_whole, NULL, DEADLINE), 0);
}
END_TEST

/* ---- children ------------------------------------------------------------ */

static int n_open(void);

/* The parent knows the library, but has not used UCX: its child may. */
static int join_in_child(struct world_rank *me)
{
    struct coll_comm *comm = NULL;
    int n_before, status = 1;
    pid_t pid;

    coll__generation_now();
    pid = fork();
    if (pid) {
        waitpid(pid, &status, 0);
        return status != 0;
    }
    n_before = n_open();
    WORLD_CHECK(me, !join(me, &comm));
    WORLD_CHECK(me, !world_sum(comm, 1));
    WORLD_CHECK(me, n_open() > n_before + 5);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, n_open() <= n_before + 5); /* the reactor's may stay */
    exit(0);
}

START_TEST(a_child_closes_what_it_has_opened)
{
    ck_assert_int_eq(world_fork(2, join_in_child, NULL, DEADLINE), 0);
}
END_TEST

/* ---- limits -------------------------------------------------------------- */

/* Descriptors below the limit that are in use; the same in each rank. */
static int n_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = -3; /* the folder's own, and two dots */

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Rank 1 has room for so many descriptors more than it has open. */
static int lack_descriptors(struct world_rank *me)
{
    int n_more = *(int *)me->arg, rc;
    struct rlimit limit;
    struct coll_comm *comm = NULL;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)(n_open() + n_more);
    if (me->rank == 1)
        WORLD_CHECK(me, !setrlimit(RLIMIT_NOFILE, &limit));
    rc = join(me, &comm);
    WORLD_CHECK(me, rc != COLL_ERR_TIMEOUT);
    if (rc == COLL_OK) {
        WORLD_CHECK(me, !world_sum(comm, 1));
        return coll_comm_destroy(comm);
    }
    WORLD_CHECK(me, comm == NULL && strstr(coll_last_error(), "ulimit -n"));
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 1"));
    return 0;
}

/* _i: from less than the control connections leave to more than is needed. */
START_TEST(who_lacks_descriptors_is_named_by_all)
{
    int n_more = 10 + 2 * _i;

    ck_assert_int_eq(world_fork(4, lack_descriptors, &n_more, DEADLINE), 0);
}
END_TEST

static int lack_room_for_files(struct world_rank *me)
{
    struct rlimit limit = {4096, 4096};
    struct coll_comm *comm = NULL;
    int rc;

    WORLD_CHECK(me, !setrlimit(RLIMIT_FSIZE, &limit));
    rc = join(me, &comm);
    if (rc == COLL_OK) {
        WORLD_CHECK(me, !world_sum(comm, 1));
        return coll_comm_destroy(comm);
    }
    WORLD_CHECK(me, getenv("UCX_TLS"));
    WORLD_CHECK(me, strstr(coll_last_error(), "ulimit -f"));
    return 0;
}

/* _i: UCX may make files. */
START_TEST(a_limit_of_files_kills_nobody)
{
    if (_i)
        setenv("UCX_TLS", "tcp,shm,self", 1);
    ck_assert_int_eq(world_fork(2, lack_room_for_files, NULL, DEADLINE), 0);
}
END_TEST

static void set_up(void)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    unsetenv("UCX_TLS");
    meet_progress();
}

int main(void)
{
    Suite *suite = suite_create("ucx_open");
    TCase *tcase = suite_case(suite, "opening", DEADLINE + 20);

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, ucx_makes_no_segments_that_have_names);
    tcase_add_test(tcase, the_users_choice_of_transports_stays);
    tcase_add_loop_test(tcase, a_rank_may_have_a_mesh_of_its_own, 0, 3);
    tcase_add_test(tcase, the_timeout_of_the_configuration_counts);
    tcase_add_test(tcase, a_failure_ends_the_wait_for_one_that_is_busy);
    tcase_add_test(tcase, a_failure_of_the_whole_ends_the_wait_in_a_part);
    tcase_add_test(tcase, a_child_closes_what_it_has_opened);
    tcase_add_loop_test(tcase, who_lacks_descriptors_is_named_by_all, 0, 14);
    tcase_add_loop_test(tcase, a_limit_of_files_kills_nobody, 0, 2);
    return suite_run(suite);
}
