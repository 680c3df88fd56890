/* SPDX-License-Identifier: BSD-3-Clause */
/* test_idle.c - coll_config.idle: a call that waits lets another library move. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#define DEADLINE patient(30)

/* The other library is here another communicator. */
struct other {
    struct coll_comm *comm;
    int n_calls;
};

/* Rank 0 waits for rank 1, which waits for this message. */
static void send_at_third_call(void *arg)
{
    struct other *other = arg;

    if (++other->n_calls == 3)
        coll_send(&other->n_calls, 1, COLL_I32, 1, other->comm, NULL);
}

static int wait_for_each_other(struct world_rank *me, struct coll_comm *comm)
{
    int got = 3;

    if (me->rank == 1)
        WORLD_CHECK(me, !coll_recv(&got, 1, COLL_I32, 0,
                                   ((struct other *)me->arg)->comm, NULL));
    WORLD_CHECK(me, !coll_barrier(comm, NULL));
    return got != 3;
}

static int idle(struct world_rank *me, struct coll_comm *whole)
{
    struct other other = {.comm = whole};
    struct coll_config config = {.size = sizeof(config),
                                 .idle =
                                     me->rank == 0 ? send_at_third_call : NULL,
                                 .idle_arg = &other};
    struct coll_comm *comm, *dup;
    int wrong;

    me->arg = &other;
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    wrong = wait_for_each_other(me, comm);
    WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
    other.n_calls = 0;
    wrong |= wait_for_each_other(me, dup);
    WORLD_CHECK(me, !coll_comm_destroy(dup));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return wrong;
}

START_TEST(a_wait_lets_another_library_move)
{
    ck_assert_int_eq(world_fork_joined(2, idle, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle");
    TCase *cases = tcase_create("idle");

    tcase_set_timeout(cases, patient(40));
    tcase_add_test(cases, a_wait_lets_another_library_move);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
