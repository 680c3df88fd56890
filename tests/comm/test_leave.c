/* SPDX-License-Identifier: BSD-3-Clause */
/* test_leave.c - a rank leaves, or divides the communicator, where the others
 * operate: all of them learn of it at once, and by both calls. */
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60 /* s; COLL_TIMEOUT is 300 */

static int x[1 << 20], y[1 << 20];

/* Rank 1 leaves, or makes another communicator, where the others operate.  A send
 * may end well where its receiver dropped it: the next one does not. */
static int operate(struct world_rank *me, struct coll_comm *comm)
{
    int rc = COLL_OK;

    switch (*(int *)me->arg) {
    case 0:
        return coll_allreduce(x, y, 10, COLL_I32, COLL_SUM, comm, NULL);
    case 1:
        return coll_barrier(comm, NULL);
    case 2: /* the last of what was sent has come */
        return coll_recv(y, 10, COLL_I32, 1, comm, NULL);
    default:
        while (!rc)
            rc = coll_send(x, 1 << 20, COLL_I32, 1, comm, NULL);
        return rc;
    }
}

static int leave_instead(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *other;
    int kind = *(int *)me->arg, rc;

    WORLD_CHECK(me, comm && !coll_barrier(comm, NULL));
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_send(x, 10, COLL_I32, 0, comm, NULL));
    if (!me->rank)
        WORLD_CHECK(me, !coll_recv(y, 10, COLL_I32, 1, comm, NULL));
    if (me->rank == 1)
        rc = kind % 2 ? coll_comm_dup(comm, &other) : coll_comm_destroy(comm);
    else
        rc = operate(me, comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "rank 1 called coll_comm_");
    WORLD_CHECK(me, strstr(coll_last_error(), " where rank "));
    if (me->rank != 1 || kind % 2)
        WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

/* _i: transports, and what the others do. */
START_TEST(who_leaves_where_others_operate_is_found)
{
    int kind = _i / 2;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(3, leave_instead, &kind, DEADLINE), 0);
}
END_TEST

/* Two groups of a split take their time one after the other: ranks that are
 * through with it operate meanwhile, and nobody takes that for a mismatch. */
static int operate_behind(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *half;

    WORLD_CHECK(me, comm && !coll_barrier(comm, NULL));
    if (me->rank == 1)
        usleep(2500000);
    WORLD_CHECK(me, !coll_comm_split(comm, me->rank % 2, 0, &half));
    if (me->rank == 2)
        usleep(2500000);
    WORLD_CHECK(me, !coll_barrier(comm, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(half));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(who_is_late_for_a_split_or_behind_it_does_not_disagree)
{
    ck_assert_int_eq(world_fork(4, operate_behind, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 1 of 5 dies in between: rank 0 learns of it from its neighbour in one
 * communicator, later by two others in the second one, and its last error is of
 * the one whose status it gets. */
static int destroy_two(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *turned;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_comm_split(comm, 0, (me->rank + 3) % 5, &turned));
    if (me->rank == 1) {
        WORLD_CHECK(me, world_await_through(me, 4, DEADLINE / 2));
        kill(getpid(), SIGKILL);
    }
    WORLD_CHECK(me, !coll_comm_destroy(turned));
    world_through(me);
    EXPECT(me, coll_comm_destroy(comm), COLL_ERR_PEER, "rank 1 ");
    return 0;
}

START_TEST(the_last_error_is_of_the_communicator_destroyed)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(5, destroy_two, NULL, DEADLINE), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("leave");
    TCase *c = tcase_create("leave");

    tcase_set_timeout(c, DEADLINE + 30);
    tcase_add_loop_test(c, who_leaves_where_others_operate_is_found, 0, 8);
    tcase_add_test(c, who_is_late_for_a_split_or_behind_it_does_not_disagree);
    tcase_add_loop_test(c, the_last_error_is_of_the_communicator_destroyed, 0,
                        2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
