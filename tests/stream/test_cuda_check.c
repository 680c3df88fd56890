/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_check.c - COLL_CHECK=1 over the fake CUDA driver: calls from GPU to GPU that
 * are not alike on all ranks end as COLL_ERR_MISMATCH, whatever the difference. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 100, MOST = 4 * COUNT * 8 };

/* What the last rank does where the others have an allreduce of COUNT i32, sum. */
enum deed {
    SAME,
    OTHER_COUNT,
    OTHER_TYPE,
    OTHER_OP,
    OWN_OP,
    OTHER_COLLECTIVE,
    BARRIER,
    ON_HOST,
    N_DEEDS
};

static const char *const words[N_DEEDS] = {
    [OTHER_COUNT] = "allreduce #2 (99 i32, sum) on a stream",
    [OTHER_TYPE] = "allreduce #2 (100 f32, sum) on a stream",
    [OTHER_OP] = "allreduce #2 (100 i32, max) on a stream",
    [OWN_OP] = "allreduce #2 (100 i32, user) on a stream",
    [OTHER_COLLECTIVE] = "alltoall #2 (100 i32) on a stream",
    [BARRIER] = "barrier #2 on a stream",
    [ON_HOST] = "allreduce #2 (100 i32, sum)",
};

struct rank {
    struct device_rank r;
    void *in, *out;
    int32_t host[COUNT];
};

static int join(struct rank *k, struct world_rank *me)
{
    if (device_join(&k->r, me))
        return 1;
    k->in = (void *)fake_memory(MOST);
    k->out = (void *)fake_memory(MOST);
    return 0;
}

static int sum(const struct rank *k, size_t count, enum coll_type type,
               enum coll_op op)
{
    return coll_allreduce(k->in, k->out, count, type, op, k->r.comm,
                          k->r.stream);
}

static void keep(const void *left, const void *right, void *out, size_t count,
                 enum coll_type type, void *arg)
{
    (void)left, (void)right, (void)out, (void)count, (void)type, (void)arg;
}

static int own_op(const struct rank *k)
{
    enum coll_op op;
    int rc = coll_op_create_user(keep, NULL, 1, &op);

    rc = rc ? rc : sum(k, COUNT, COLL_I32, op);
    coll_op_destroy(op);
    return rc;
}

static int act(struct rank *k, enum deed deed)
{
    switch (deed) {
    case OTHER_COUNT:
        return sum(k, COUNT - 1, COLL_I32, COLL_SUM);
    case OTHER_TYPE:
        return sum(k, COUNT, COLL_F32, COLL_SUM);
    case OTHER_OP:
        return sum(k, COUNT, COLL_I32, COLL_MAX);
    case OWN_OP:
        return own_op(k);
    case OTHER_COLLECTIVE:
        return coll_alltoall(k->in, k->out, COUNT, COLL_I32, k->r.comm,
                             k->r.stream);
    case BARRIER:
        return coll_barrier(k->r.comm, k->r.stream);
    case ON_HOST:
        return coll_allreduce(k->host, k->host, COUNT, COLL_I32, COLL_SUM,
                              k->r.comm, NULL);
    default:
        return sum(k, COUNT, COLL_I32, COLL_SUM);
    }
}

static int is_last(const struct world_rank *me)
{
    return me->rank == me->size - 1;
}

static int times(const char *text, const char *word)
{
    int n = 0;

    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* All know both calls, and the stream stands still for nobody. */
static int disagree(struct world_rank *me)
{
    enum deed deed = *(const enum deed *)me->arg;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, act(&k, SAME) == COLL_OK);
    world_meet(me);
    EXPECT(me, act(&k, is_last(me) ? deed : SAME), COLL_ERR_MISMATCH,
           words[deed]);
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "allreduce #2 (100 i32, sum) on a stream"));
    WORLD_CHECK(me, times(coll_last_error(), " on a stream") ==
                        (deed == ON_HOST ? 1 : 2));
    OK(cu.StreamSynchronize(k.r.stream));
    WORLD_CHECK(me, act(&k, SAME) == COLL_ERR_MISMATCH);
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: the deed and, above it, the ranks. */
START_TEST(calls_that_are_not_alike_are_told)
{
    enum deed deed = (enum deed)(1 + _i % (N_DEEDS - 1));

    patient_timeout(30);
    ck_assert_int_eq(
        world_fork(2 + _i / (N_DEEDS - 1), disagree, &deed, patient(60)), 0);
}
END_TEST

/* Roots, and counts of all ranks. */
static int disagree_more(struct world_rank *me)
{
    size_t counts[8], i = (size_t)me->size - 1;
    struct rank k;
    int rc;

    WORLD_CHECK(me, !join(&k, me));
    for (int r = 0; r < me->size; r++)
        counts[r] = 10;
    counts[i] += is_last(me);
    if (me->arg)
        rc = coll_allgatherv(k.in, k.out, counts, NULL, COLL_I32, k.r.comm,
                             k.r.stream);
    else
        rc = coll_broadcast(k.in, k.out, COUNT, COLL_I32, is_last(me), k.r.comm,
                            k.r.stream);
    EXPECT(me, rc, COLL_ERR_MISMATCH,
           me->arg ? "counts with digest" : "(100 i32, root 1) on a stream");
    WORLD_CHECK(me, me->arg || strstr(coll_last_error(), "(100 i32, root 0)"));
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(another_root_or_count_of_a_rank_is_told)
{
    ck_assert_int_eq(device_fork(_i, disagree_more, NULL), 0);
    ck_assert_int_eq(world_fork(_i, disagree_more, "", patient(60)), 0);
}
END_TEST

/* The last rank has one call less, and ends. */
static int call_less(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, act(&k, SAME) == COLL_OK);
    world_meet(me);
    if (!is_last(me))
        EXPECT(me, act(&k, SAME), COLL_ERR_MISMATCH,
               "called coll_comm_destroy where rank");
    OK(cu.StreamSynchronize(k.r.stream));
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(a_call_less_is_told)
{
    ck_assert_int_eq(device_fork(_i, call_less, NULL), 0);
}
END_TEST

/* It never calls again. */
static int stay_away(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, act(&k, SAME) == COLL_OK);
    world_meet(me);
    world_hurry(k.r.comm, patient(1));
    if (is_last(me))
        WORLD_CHECK(me, world_await_failure(k.r.comm, patient(20)) ==
                            COLL_ERR_TIMEOUT);
    else
        EXPECT(me, act(&k, SAME), COLL_ERR_TIMEOUT,
               "allreduce #2 (100 i32, sum) on a stream did not end within");
    OK(cu.StreamSynchronize(k.r.stream));
    coll_comm_destroy(k.r.comm);
    return 0;
}

START_TEST(a_rank_that_stays_away_is_named)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(3, stay_away, NULL, patient(60)), 0);
}
END_TEST

/* Graphs are compared as they are captured: alike, and then not. */
static int capture(struct world_rank *me)
{
    CUgraph graph;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, act(&k, SAME) == COLL_OK);
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    device_launch(&k.r, graph, 3);
    world_meet(me);
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(me, act(&k, is_last(me) ? OTHER_OP : SAME), COLL_ERR_MISMATCH,
           words[OTHER_OP]);
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: ranks */
START_TEST(what_is_captured_is_compared_then)
{
    ck_assert_int_eq(device_fork(_i, capture, NULL), 0);
}
END_TEST

/* A group of several calls, and of several communicators of one thread, of which
 * the other one only waits. */
static int group(struct world_rank *me)
{
    static struct rank *ranks[2];
    struct rank k;
    int rc = COLL_OK;

    WORLD_CHECK(me, !join(&k, me));
    ranks[me->rank] = &k;
    for (int round = 0; round < 3; round++) {
        world_meet(me);
        if (!me->rank) {
            WORLD_CHECK(me, !coll_group_start());
            for (int r = 1; r >= 0; r--) {
                WORLD_CHECK(me, !act(ranks[r], SAME));
                WORLD_CHECK(me, !act(ranks[r],
                                     r && round == 2 ? OTHER_TYPE : OTHER_OP));
            }
            rc = coll_group_end();
            OK(cu.StreamSynchronize(ranks[0]->r.stream));
            OK(cu.StreamSynchronize(ranks[1]->r.stream));
            WORLD_CHECK(me, rc == (round == 2 ? COLL_ERR_MISMATCH : COLL_OK));
        }
        world_meet(me);
    }
    coll_comm_destroy(k.r.comm);
    return 0;
}

START_TEST(a_group_is_compared_as_a_whole)
{
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ck_assert_int_eq(device_threads(2, group, NULL), 0);
}
END_TEST

/* Requests, calls of the host in between, and the same end. */
static int agree(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .count = COUNT};
    struct coll_request *request;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    args.in = k.in;
    args.out = k.out;
    args.stream = k.r.stream;
    WORLD_CHECK(me, !coll_request_create(&args, k.r.comm, &request));
    for (int i = 0; i < 5; i++) {
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me, !act(&k, ON_HOST));
        WORLD_CHECK(me, !act(&k, OTHER_COLLECTIVE));
        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, !act(&k, OWN_OP));
        WORLD_CHECK(me, !act(&k, BARRIER));
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    return device_leave(&k.r);
}

/* _i: ranks */
START_TEST(ranks_that_agree_see_no_difference)
{
    ck_assert_int_eq(device_fork(_i, agree, NULL), 0);
}
END_TEST

/* All ranks have it, or none. */
static int differ(struct world_rank *me)
{
    struct coll_comm *comm;

    setenv("COLL_CHECK", me->rank ? "1" : "0", 1);
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_MISMATCH,
           "COLL_CHECK is '0' on rank 0 and '1' on rank 1");
    return 0;
}

START_TEST(all_ranks_check_or_none_does)
{
    ck_assert_int_eq(device_fork(2, differ, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_check");
    TCase *tc = tcase_create("cuda_check");

    setenv("COLL_CHECK", "1", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, calls_that_are_not_alike_are_told, 0,
                        4 * (N_DEEDS - 1));
    tcase_add_loop_test(tc, another_root_or_count_of_a_rank_is_told, 2, 6);
    tcase_add_loop_test(tc, a_call_less_is_told, 2, 6);
    tcase_add_test(tc, a_rank_that_stays_away_is_named);
    tcase_add_loop_test(tc, what_is_captured_is_compared_then, 2, 6);
    tcase_add_test(tc, a_group_is_compared_as_a_whole);
    tcase_add_loop_test(tc, ranks_that_agree_see_no_difference, 1, 6);
    tcase_add_test(tc, all_ranks_check_or_none_does);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
