/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mismatch.c - ranks that do not call the same end soon, each with a sentence that
 * has both calls. */
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 40


static int x[1 << 20], y[1 << 22];

/* Each case: what all ranks do, and what rank 1 does instead. */
static int disagree_count(struct coll_comm *comm, int is_odd)
{
    return coll_allreduce(x, y, is_odd ? 99 : 100, COLL_I32, COLL_SUM, comm,
                          NULL);
}

static int disagree_type(struct coll_comm *comm, int is_odd)
{
    return coll_allreduce(x, y, 1, is_odd ? COLL_F32 : COLL_I32, COLL_SUM, comm,
                          NULL);
}

static int disagree_op(struct coll_comm *comm, int is_odd)
{
    return coll_allreduce(x, y, 5000, COLL_I32, is_odd ? COLL_MAX : COLL_SUM,
                          comm, NULL);
}

/* Two fields differ: these are probably two different calls. */
static int disagree_count_and_op(struct coll_comm *comm, int is_odd)
{
    return coll_allreduce(x, y, is_odd ? 20 : 30, COLL_I32,
                          is_odd ? COLL_MAX : COLL_SUM, comm, NULL);
}

static int disagree_collective(struct coll_comm *comm, int is_odd)
{
    return is_odd ? coll_barrier(comm, NULL)
                  : coll_allreduce(x, y, 10, COLL_I32, COLL_SUM, comm, NULL);
}

static int disagree_zero(struct coll_comm *comm, int is_odd)
{
    return coll_allgather(x, y, is_odd ? 0 : 10, COLL_I32, comm, NULL);
}

static int disagree_reduce_root(struct coll_comm *comm, int is_odd)
{
    return coll_reduce(x, y, 1 << 18, COLL_I32, COLL_SUM, is_odd ? 2 : 0, comm,
                       NULL);
}

static int disagree_counts(struct coll_comm *comm, int is_odd)
{
    size_t counts[] = {10, 10, is_odd ? 11 : 12};

    return coll_allgatherv(x, y, counts, NULL, COLL_I32, comm, NULL);
}

static int disagree_scattered(struct coll_comm *comm, int is_odd)
{
    size_t counts[] = {10, is_odd ? 10 : 12, 10};

    return coll_reduce_scatterv(x, y, counts, COLL_I32, COLL_MAX, comm, NULL);
}

/* Lengths that two ranks alone know: rank 1 gives one more than is taken. */
static int disagree_gatherv(struct coll_comm *comm, int is_odd)
{
    size_t counts[] = {10, 10, 10};
    int rank = coll_comm_rank(comm);

    return coll_gatherv(x + rank, is_odd ? 11 : 10, y, counts, NULL, COLL_I32,
                        0, comm, NULL);
}

static int disagree_scatterv(struct coll_comm *comm, int is_odd)
{
    size_t counts[] = {10, 10, 10};

    return coll_scatterv(x, counts, NULL, y, is_odd ? 11 : 10, COLL_I32, 0,
                         comm, NULL);
}

static int disagree_alltoallv(struct coll_comm *comm, int is_odd)
{
    size_t in[] = {is_odd ? 11 : 10, 10, 10}, out[] = {10, 10, 10};

    return coll_alltoallv(x, in, NULL, y, out, NULL, COLL_I32, comm, NULL);
}

/* Both ends send a message too large to be buffered: only a look around finds
 * that nobody takes it. */
static int disagree_root(struct coll_comm *comm, int is_odd)
{
    return coll_broadcast(x, y, 1 << 20, COLL_I32, is_odd, comm, NULL);
}

/* Neither end sends: they must ask each other. */
static int disagree_receivers(struct coll_comm *comm, int is_odd)
{
    return coll_broadcast(x, y, 10, COLL_I32, is_odd ? 2 : 1, comm, NULL);
}

/* The same by coll_test() alone. */
static int disagree_polling(struct coll_comm *comm, int is_odd)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_BROADCAST,
                             .root = is_odd ? 2 : 1,
                             .type = COLL_I32,
                             .in = x,
                             .out = y,
                             .count = 10};
    struct coll_request *request = NULL;
    int rc = coll_request_create(&args, comm, &request);

    if (rc == COLL_OK)
        rc = coll_start(request);
    while (rc == COLL_OK || rc == COLL_IN_PROGRESS)
        if ((rc = coll_test(request)) == COLL_OK)
            break;
    coll_request_destroy(request);
    return rc;
}

/* The same operation by another algorithm, whose messages are as long. */
static int disagree_way(struct coll_comm *comm, int is_odd)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = x,
                             .out = y,
                             .count = 4,
                             .algo = is_odd ? "binomial" : "one_shot"};
    struct coll_request *request = NULL;
    int rc = coll_request_create(&args, comm, &request);

    if (rc == COLL_OK)
        rc = coll_start(request);
    if (rc == COLL_OK)
        rc = coll_wait(request, 0);
    coll_request_destroy(request);
    return rc;
}

struct disagreement {
    int (*call)(struct coll_comm *comm, int is_odd);
    const char *all, *odd; /* both calls in words */
    const char *advice;
};

static const struct disagreement disagreements[] = {
    {disagree_count, "allreduce #2 (100 i32, sum)", "#2 (99 i32, sum)",
     "must pass the same count"},
    {disagree_type, "allreduce #2 (1 i32, sum)", "#2 (1 f32, sum)",
     "must pass the same type"},
    {disagree_op, "allreduce #2 (5000 i32, sum)", "#2 (5000 i32, max)",
     "must pass the same op"},
    {disagree_count_and_op, "allreduce #2 (30 i32, sum)", "#2 (20 i32, max)",
     "the same operations in the same order"},
    {disagree_collective, "allreduce #2 (10 i32, sum)", "barrier #2",
     "the same operations in the same order"},
    {disagree_zero, "allgather #2 (10 i32)", "allgather #2 (0 i32)",
     "must pass the same count"},
    {disagree_root, "i32, root 0)", "i32, root 1)", "must pass the same root"},
    {disagree_receivers, "i32, root 1)", "i32, root 2)",
     "must pass the same root"},
    {disagree_polling, "i32, root 1)", "i32, root 2)",
     "must pass the same root"},
    {disagree_reduce_root, "sum, root 0)", "sum, root 2)",
     "must pass the same root"},
    {disagree_counts, "allgatherv #2 (i32, counts with", "digest ",
     "must pass the same counts"},
    {disagree_scattered, "scatterv #2 (i32, max, counts with", "digest ",
     "must pass the same counts"},
    {disagree_way, "#2 (4 i32, sum) by one_shot", "#2 (4 i32, sum) by binomial",
     "set coll_args.algo alike"},
    {disagree_gatherv, "gatherv #2 (i32, root 0)", "sent 44 bytes",
     "at both ends must be equal"},
    {disagree_scatterv, "scatterv #2 (i32, root 0)", "takes 44",
     "at both ends must be equal"},
    {disagree_alltoallv, "alltoallv #2 (i32)", "sent 44 bytes",
     "at both ends must be equal"},
};

static int disagree(struct world_rank *me)
{
    const struct disagreement *d = me->arg;
    struct coll_comm *comm = world_join(me);
    int rc;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !world_barrier(me, comm));
    rc = d->call(comm, me->rank == 1);
    if (rc == COLL_OK) /* it needed nothing from a rank that errs; the next */
        rc = coll_barrier(comm, NULL);
    WORLD_CHECK(me, rc == COLL_ERR_MISMATCH);
    WORLD_CHECK(me, strstr(coll_last_error(), d->all));
    WORLD_CHECK(me, strstr(coll_last_error(), d->odd));
    WORLD_CHECK(me, strstr(coll_last_error(), "rank 1"));
    WORLD_CHECK(me, strstr(coll_last_error(), d->advice));
    /* it stays so, and every call says it again */
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_MISMATCH, d->odd);
    WORLD_CHECK(me, coll_comm_async_error(comm) == COLL_ERR_MISMATCH);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(a_mismatch_names_both_calls_on_every_rank)
{
    for (int t = 0; t < 2; t++) {
        setenv("COLL_TRANSPORTS", world_net(t ? "self," : "self,shm,"), 1);
        ck_assert_int_eq(
            world_fork(3, disagree, (void *)&disagreements[_i], DEADLINE), 0);
    }
}
END_TEST

/* Rank 1 computes while two operations are queued, and rank 0, which is done
 * with the first one, asks where it is. */
static int queue_and_compute(struct world_rank *me)
{
    struct coll_args args[] = {
        {.size = sizeof(args[0]),
         .collective = COLL_BROADCAST,
         .in = x,
         .out = y,
         .count = 1},
        {.size = sizeof(args[0]), .collective = COLL_BARRIER},
    };
    struct coll_request *requests[2];
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 2; i++)
        WORLD_CHECK(me, !coll_request_create(&args[i], comm, &requests[i]) &&
                            !coll_start(requests[i]));
    if (me->rank)
        usleep(2500000);
    for (int i = 0; i < 2; i++)
        WORLD_CHECK(me, !coll_wait(requests[i], 0) &&
                            !coll_request_destroy(requests[i]));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(ranks_that_are_behind_in_a_queue_do_not_disagree)
{
    ck_assert_int_eq(world_fork(2, queue_and_compute, NULL, DEADLINE), 0);
}
END_TEST

/* Different roots, small messages: each rank is done before it could notice. */
static int part_in_disagreement(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_broadcast(x, y, 1, COLL_I32, me->rank, comm, NULL));
    EXPECT(me, coll_comm_destroy(comm), COLL_ERR_MISMATCH, "disagree");
    return 0;
}

START_TEST(a_mismatch_nobody_noticed_is_found_when_leaving)
{
    ck_assert_int_eq(world_fork(2, part_in_disagreement, NULL, DEADLINE), 0);
}
END_TEST

/* The rank that errs is done and leaves; the root waits for what it sent to
 * another one. */
static int leave_the_root(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int root = me->rank == 1 ? 2 : 0;

    WORLD_CHECK(me, comm);
    if (me->rank)
        WORLD_CHECK(me, !coll_gather(x, y, 1, COLL_I32, root, comm, NULL));
    world_meet(me); /* before the root can notice */
    if (!me->rank)
        EXPECT(me, coll_gather(x, y, 1, COLL_I32, root, comm, NULL),
               COLL_ERR_MISMATCH, "rank 1 called gather #1 (1 i32, root 2)");
    EXPECT(me, coll_comm_destroy(comm), COLL_ERR_MISMATCH, "i32, root 2)");
    return 0;
}

START_TEST(a_mismatch_is_found_though_who_errs_has_left)
{
    ck_assert_int_eq(world_fork(3, leave_the_root, NULL, DEADLINE), 0);
}
END_TEST

/* Between the call that differs and the wait that finds it lie more calls than a
 * rank remembers.  *arg: do those that differ still run, since their messages are
 * too large to go without the other? */
static int disagree_long_ago(struct world_rank *me)
{
    int still_run = *(int *)me->arg, one = 1, sum, rc = COLL_OK;
    struct coll_args args = {.size = sizeof(args),
                             .collective =
                                 still_run ? COLL_BROADCAST : COLL_REDUCE,
                             .root = still_run ? me->rank : !me->rank,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = y,
                             .out = y,
                             .count = still_run ? 1 << 22 : 1000};
    struct coll_request *request;
    struct coll_comm *comm = world_join(me);
    const char *said;

    WORLD_CHECK(me, comm && !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    for (int i = 0; i < 1100 && rc == COLL_OK; i++)
        rc = coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL);
    if (rc == COLL_OK)
        rc = coll_wait(request, 0);
    for (int n = 0; n < 50 && rc == COLL_OK; n++) { /* rank 0 has to wait */
        if (me->rank)
            usleep(200000);
        rc = coll_barrier(comm, NULL);
    }
    WORLD_CHECK(me, rc == COLL_ERR_MISMATCH);
    said = coll_last_error();
    WORLD_CHECK(me, strstr(said, "root 0)") && strstr(said, "root 1)"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(a_mismatch_of_long_ago_names_no_call_for_another)
{
    int still_run = _i / 2;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    coll__limit_assume(LIMIT_OVERTAKE, 1000); /* those that follow */
    ck_assert_int_eq(world_fork(2, disagree_long_ago, &still_run, DEADLINE), 0);
}
END_TEST

/* It fails as it comes to look for such; its links are closed then. */
static int fail_at_a_look(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !world_sum(comm, 255));
    world_meet(me);
    if (!me->rank)
        WORLD_CHECK(me, !coll_comm_abort(comm, "enough"));
    WORLD_CHECK(me, world_await_failure(comm, DEADLINE) == COLL_ERR_ABORTED);
    for (int i = 0; i < 2; i++)
        WORLD_CHECK(me, world_sum(comm, 1) == COLL_ERR_ABORTED);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_ABORTED);
    return 0;
}

START_TEST(who_has_failed_looks_for_nothing)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fail_at_a_look, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mismatch");
    TCase *c = tcase_create("mismatch");

    tcase_set_timeout(c, 2 * DEADLINE + 20);
    tcase_add_loop_test(c, a_mismatch_names_both_calls_on_every_rank, 0,
                        (int)ARRAY_LEN(disagreements));
    tcase_add_test(c, ranks_that_are_behind_in_a_queue_do_not_disagree);
    tcase_add_test(c, a_mismatch_nobody_noticed_is_found_when_leaving);
    tcase_add_test(c, a_mismatch_is_found_though_who_errs_has_left);
    tcase_add_loop_test(c, a_mismatch_of_long_ago_names_no_call_for_another, 0,
                        4);
    tcase_add_loop_test(c, who_has_failed_looks_for_nothing, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
