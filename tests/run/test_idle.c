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
    struct coll_request *waited; /* what the caller waits for; may be NULL */
    int n_calls;
};

/* Rank 0 waits for rank 1, which waits for this message. */
static void send_at_third_call(void *arg)
{
    struct other *other = arg;

    if (++other->n_calls == 3)
        coll_send(&other->n_calls, 1, COLL_I32, 1, other->comm, NULL);
}

/* Comes back when what the caller waits for has ended. */
static void send_and_end(void *arg)
{
    struct other *other = arg;

    send_at_third_call(arg);
    while (other->n_calls == 3 && other->waited &&
           coll_request_status(other->waited) == COLL_IN_PROGRESS)
        coll_progress();
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

static int end_within(struct world_rank *me, struct coll_comm *whole)
{
    struct other other = {.comm = whole};
    struct coll_config config = {.size = sizeof(config),
                                 .idle = me->rank == 0 ? send_and_end : NULL,
                                 .idle_arg = &other};
    struct coll_comm *comm;
    int mine = me->rank == 0 ? 1 : 0, sum = 0;
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = &mine,
                             .out = &sum,
                             .count = 1};

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &other.waited));
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_recv(&mine, 1, COLL_I32, 0, whole, NULL));
    WORLD_CHECK(me, !coll_start(other.waited));
    WORLD_CHECK(me, !coll_wait(other.waited, 0));
    WORLD_CHECK(me, !coll_request_destroy(other.waited));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return sum != 1 + 3;
}

START_TEST(what_is_waited_for_ends_within)
{
    ck_assert_int_eq(world_fork_joined(2, end_within, NULL, DEADLINE), 0);
}
END_TEST

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
    tcase_add_test(cases, what_is_waited_for_ends_within);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
