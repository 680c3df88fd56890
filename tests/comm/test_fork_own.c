/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fork_own.c - children made by fork() that go their own way: they run
 * another program, or make communicators of their own. */
#include "tests/comm/fork_child.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1 /* whose children start no threads */
#else
#define HAS_TSAN 0
#endif

/* ---- another program --------------------------------------------------------- */

static int fork_and_exec(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !sums_well(me, comm));
    CHILD_CHECK(me, execl("/bin/true", "true", (char *)NULL));
    WORLD_CHECK(me, system("exit 0") == 0);
    WORLD_CHECK(me, !sums_well(me, comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_child_may_run_another_program)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fork_and_exec, NULL, DEADLINE), 0);
}
END_TEST

/* ---- communicators of its own -------------------------------------------------- */

/* Two children of rank 0 meet each other. */
static int children_meet(struct world_rank *me, int rank,
                         const struct coll_unique_id *id)
{
    struct world_rank own = {.rank = rank, .size = 2};
    struct coll_comm *comm;

    (void)me;
    WORLD_CHECK(&own, !coll_comm_create(&comm, 2, id, rank, NULL));
    WORLD_CHECK(&own, !sums_well(&own, comm));
    WORLD_CHECK(&own, !coll_comm_destroy(comm));
    return 0;
}

static int fork_a_pair(struct world_rank *me)
{
    static struct coll_comm *volatile kept; /* what the child never frees */
    struct coll_comm *comm = world_join(me);
    struct coll_unique_id id;
    pid_t pids[2];

    kept = comm;
    WORLD_CHECK(me, kept && !sums_well(me, comm));
    if (!me->rank) {
        WORLD_CHECK(me, !coll_get_unique_id(&id));
        for (int r = 0; r < 2; r++) {
            pids[r] = fork_child();
            if (!pids[r]) { /* one of them keeps its parent's */
                int rc = r ? 0 : coll_comm_destroy(comm);

                exit(rc || children_meet(me, r, &id));
            }
        }
        WORLD_CHECK(me, child_ends_well(pids[0]));
        WORLD_CHECK(me, child_ends_well(pids[1]));
    }
    WORLD_CHECK(me, !sums_well(me, comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(children_make_communicators_of_their_own)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(2, fork_a_pair, NULL, DEADLINE), 0);
}
END_TEST

static int ucx_is_refused(void)
{
    struct coll_transport_info info;
    size_t i = 0;

    while (!coll_transport_list(i, &info) && strcmp(info.name, "ucx"))
        i++;
    return !info.is_usable && strstr(info.why, "fork()");
}

/* UCX has threads and connections that a fork does not copy. */
static int child_wants_ucx(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *own;

    WORLD_CHECK(me, comm && !sums_well(me, comm));
    CHILD_CHECK(me, !ucx_is_refused() || coll_comm_create_env(&own, NULL) ||
                        coll_comm_destroy(own));
    WORLD_CHECK(me, !sums_well(me, comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(ucx_does_not_work_in_a_child)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    setenv("COLL_BOOTSTRAP", "single", 1);
    ck_assert_int_eq(world_fork(2, child_wants_ucx, NULL, DEADLINE), 0);
}
END_TEST

/* The launcher's variables are one process's. */
START_TEST(the_launcher_counts_one_process)
{
    struct coll_comm *comm, *own;
    pid_t pid;

    setenv("COLL_RANK", "0", 1);
    setenv("COLL_SIZE", "1", 1);
    setenv("COLL_ROOT", "127.0.0.1:1", 1);
    setenv("COLL_JOB_SECRET", "none", 1);
    pid = fork_child(); /* before the parent has joined */
    if (!pid)
        _exit(coll_comm_create_env(&own, NULL) || coll_comm_destroy(own));
    ck_assert(child_ends_well(pid));
    ck_assert_int_eq(coll_comm_create_env(&comm, NULL), COLL_OK);
    pid = fork_child();
    if (!pid)
        _exit(coll_comm_create_env(&own, NULL) != COLL_ERR_INVALID ||
              !strstr(coll_last_error(), "fork()"));
    ck_assert(child_ends_well(pid));
    ck_assert_int_eq(coll_comm_destroy(comm), COLL_OK);
    ck_assert_int_eq(coll_comm_create_env(&comm, NULL), COLL_OK);
    ck_assert_int_eq(coll_comm_destroy(comm), COLL_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork_own");
    TCase *c = tcase_create("fork_own");

    tcase_set_timeout(c, 2 * DEADLINE + 30);
    tcase_add_loop_test(c, a_child_may_run_another_program, 0, 2);
    if (!HAS_TSAN)
        tcase_add_test(c, children_make_communicators_of_their_own);
    tcase_add_test(c, ucx_does_not_work_in_a_child);
    tcase_add_test(c, the_launcher_counts_one_process);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
