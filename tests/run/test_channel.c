/* SPDX-License-Identifier: BSD-3-Clause */
/* test_channel.c - several operations of one communicator under way at once: small
 * ones overtake large ones, messages of two ranks go beside them. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60
#define LARGE                                                                  \
    ((size_t)4 << 20) /* elements: many rounds, whatever is beside it */
#define SMALL 10
#define N_SMALL 5

static struct coll_args sum_of(const int *in, int *out, size_t count)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_ALLREDUCE,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .in = in,
                              .out = out,
                              .count = count};
}

/* A large allreduce of ones that has been started. */
struct large {
    int *in, *out;
    struct coll_request *request;
};

static int start_large(struct world_rank *me, struct large *large,
                       struct coll_comm *comm)
{
    struct coll_args args;

    large->in = malloc(LARGE * sizeof(int));
    large->out = calloc(LARGE, sizeof(int));
    WORLD_CHECK(me, large->in && large->out);
    for (size_t i = 0; i < LARGE; i++)
        large->in[i] = 1;
    args = sum_of(large->in, large->out, LARGE);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &large->request));
    WORLD_CHECK(me, !coll_start(large->request));
    return 0;
}

static int is_sum_of_ones(const struct large *large, int size)
{
    for (size_t i = 0; i < LARGE; i++)
        if (large->out[i] != size)
            return 0;
    return 1;
}

static int free_large(struct world_rank *me, struct large *large)
{
    WORLD_CHECK(me, !coll_request_destroy(large->request));
    free(large->in);
    free(large->out);
    return 0;
}

/* ---- overtaking ----------------------------------------------------------- */

/* May the large one end while its caller does nothing? */
static int has_thread(void)
{
    const char *progress = getenv("COLL_PROGRESS");

    return progress && !strcmp(progress, "thread");
}

/* Has the large one ended by the time that the small ones have?  Each round moves
 * some of it, and it takes many; so this is no matter of time.  arg: 1 if so. */
static int pass(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct large large;
    int rc;

    WORLD_CHECK(me, comm && !coll_barrier(comm, NULL));
    WORLD_CHECK(me, !start_large(me, &large, comm));
    WORLD_CHECK(me, !world_sum(comm, N_SMALL));
    rc = coll_test(large.request);
    if (*(int *)me->arg || !has_thread())
        WORLD_CHECK(me, rc == (*(int *)me->arg ? COLL_OK : COLL_IN_PROGRESS));
    WORLD_CHECK(me, !coll_wait(large.request, 0));
    WORLD_CHECK(me, is_sum_of_ones(&large, me->size));
    WORLD_CHECK(me, !free_large(me, &large));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* _i: the transport, and 2 to 5 ranks. */
START_TEST(a_small_one_does_not_wait_for_a_large_one)
{
    int is_in_order = 0;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    setenv("COLL_ALGO", "allreduce:ring",
           1); /* it needs all ranks many times */
    ck_assert_int_eq(world_fork(2 + _i / 2, pass, &is_in_order, DEADLINE), 0);
}
END_TEST

START_TEST(none_overtakes_where_that_is_not_wanted)
{
    int is_in_order = 1;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    coll__limit_assume(LIMIT_OVERTAKE, 0);
    ck_assert_int_eq(world_fork(2 + _i / 2, pass, &is_in_order, DEADLINE), 0);
}
END_TEST

/* Messages that nobody takes yet hold no collective up, nor does a collective them:
 * rank 0 sends at once what rank 1 receives last, and the other way round. */
static int send_beside(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[1000], y[1000];
    struct coll_args first = {.size = sizeof(first),
                              .type = COLL_I32,
                              .in = x,
                              .out = y,
                              .count = 1000,
                              .root = 1 - me->rank};
    struct coll_request *request;
    struct large large;

    first.collective = me->rank ? COLL_RECV : COLL_SEND;
    x[999] = 5;
    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&first, comm, &request));
    if (!me->rank)
        WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !start_large(me, &large, comm));
    WORLD_CHECK(me, !world_sum(comm, N_SMALL));
    WORLD_CHECK(me, !coll_wait(large.request, 0));
    if (me->rank)
        WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !coll_wait(request, 0));
    WORLD_CHECK(me, !me->rank || y[999] == 5);
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !free_large(me, &large));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(messages_of_two_ranks_go_beside_collectives)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, send_beside, NULL, DEADLINE), 0);
}
END_TEST

/* ---- any of them in any order ---------------------------------------------- */

#define IN_FLIGHT 12
#define N_OPS 80
#define MOST 70000 /* elements */

struct op {
    struct coll_request *request;
    int number, kind, root;
    size_t count;
    int *in, *out;
};

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int value_of(const struct op *op, int rank, size_t i)
{
    return rank * 31 + op->number * 7 + (int)(i % 1021);
}

/* The same on all ranks. */
static int start_op(struct world_rank *me, struct op *op, int number,
                    unsigned *script, struct coll_comm *comm)
{
    static const enum coll_collective kinds[] = {COLL_ALLREDUCE, COLL_BROADCAST,
                                                 COLL_ALLGATHER, COLL_BARRIER};
    static const size_t counts[] = {1, 100, 3000, 9000, MOST};
    struct coll_args args = {
        .size = sizeof(args), .type = COLL_I32, .op = COLL_SUM};

    op->number = number;
    op->kind = (int)(next_random(script) % 4);
    op->root = (int)(next_random(script) % (unsigned)me->size);
    op->count = counts[next_random(script) % 5];
    for (size_t i = 0; i < op->count; i++)
        op->in[i] = value_of(op, me->rank, i);
    memset(op->out, 0, op->count * (size_t)me->size * sizeof(int));
    args.collective = kinds[op->kind];
    args.root = op->root;
    args.in = op->in;
    args.out = op->out;
    args.count = args.collective == COLL_BARRIER ? 0 : op->count;
    WORLD_CHECK(me, !coll_request_create(&args, comm, &op->request));
    WORLD_CHECK(me, !coll_start(op->request));
    return 0;
}

/* The sum of all ranks' is what rank 0 has of each, and the ranks' own parts. */
static int wanted(const struct op *op, int size, int part, size_t i)
{
    if (op->kind == 1)
        return value_of(op, op->root, i);
    if (op->kind == 2)
        return value_of(op, part, i);
    return size * value_of(op, 0, i) + 31 * (size * (size - 1) / 2);
}

static int finish_op(struct world_rank *me, struct op *op)
{
    int n_parts = op->kind == 3 ? 0 : op->kind == 2 ? me->size : 1;

    WORLD_CHECK(me, !coll_wait(op->request, 0));
    for (int part = 0; part < n_parts; part++)
        for (size_t i = 0; i < op->count; i++)
            WORLD_CHECK(me, op->out[(size_t)part * op->count + i] ==
                                wanted(op, me->size, part, i));
    WORLD_CHECK(me, !coll_request_destroy(op->request));
    op->request = NULL;
    return 0;
}

/* Ranks start the same and wait as each likes. */
static int random_orders(struct world_rank *me)
{
    unsigned script = *(unsigned *)me->arg + 1,
             own = script * 100 + (unsigned)me->rank;
    struct coll_comm *comm = world_join(me);
    struct op ops[IN_FLIGHT] = {0};
    int number = 0, n_ops = IN_FLIGHT + part_of(N_OPS - IN_FLIGHT);

    WORLD_CHECK(me, comm);
    for (int i = 0; i < IN_FLIGHT; i++) {
        ops[i].in = malloc(MOST * sizeof(int));
        ops[i].out = malloc(MOST * (size_t)me->size * sizeof(int));
        WORLD_CHECK(me, ops[i].in && ops[i].out);
    }
    while (number < n_ops) {
        for (int i = 0; i < IN_FLIGHT; i++)
            if (!ops[i].request && number < n_ops)
                WORLD_CHECK(me,
                            !start_op(me, &ops[i], number++, &script, comm));
        for (unsigned n = next_random(&own) % IN_FLIGHT; n; n--) {
            struct op *op = &ops[next_random(&own) % IN_FLIGHT];

            if (op->request)
                WORLD_CHECK(me, !finish_op(me, op));
        }
    }
    for (int i = IN_FLIGHT - 1; i >= 0; i--) {
        if (ops[i].request)
            WORLD_CHECK(me, !finish_op(me, &ops[i]));
        free(ops[i].in);
        free(ops[i].out);
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* _i: the transport, the number of ranks, the seed. */
START_TEST(random_operations_end_well_in_any_order)
{
    static const int sizes[] = {2, 3, 4, 9};
    unsigned seed = (unsigned)_i / 8;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(
        world_fork(sizes[_i / 2 % 4], random_orders, &seed, 2 * DEADLINE), 0);
}
END_TEST

/* Two bundles of a group travel at once, each on its channel's stage. */
static int two_stages(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int large[3][20000], small[3][10];
    static float other[3][10];

    WORLD_CHECK(me, comm);
    for (int round = 1; round < 20; round++) {
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 20000; i++)
                large[k][i] = round + k + i;
            for (int i = 0; i < 10; i++) {
                other[k][i] = (float)(round * k + i);
                small[k][i] = round * (k + 5);
            }
        }
        coll_group_start();
        for (int k = 0; k < 3; k++)
            coll_allreduce(large[k], large[k], 20000, COLL_I32, COLL_SUM, comm,
                           NULL);
        for (int k = 0; k < 3; k++)
            coll_allreduce(other[k], other[k], 10, COLL_F32, COLL_SUM, comm,
                           NULL);
        for (int k = 0; k < 3; k++)
            coll_allreduce(small[k], small[k], 10, COLL_I32, COLL_SUM, comm,
                           NULL);
        WORLD_CHECK(me, !coll_group_end());
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 20000; i++)
                WORLD_CHECK(me, large[k][i] == me->size * (round + k + i));
            for (int i = 0; i < 10; i++) {
                WORLD_CHECK(me, small[k][i] == me->size * round * (k + 5));
                WORLD_CHECK(me,
                            other[k][i] == (float)(me->size * (round * k + i)));
            }
        }
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(what_is_fused_for_one_channel_leaves_the_other_alone)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    setenv("COLL_FUSE", "1M", 1);
    ck_assert_int_eq(world_fork(3, two_stages, NULL, DEADLINE), 0);
}
END_TEST

/* ---- what goes wrong -------------------------------------------------------- */

/* The first operation is a small one on rank 1 and a large one on the others. */
static int differ(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[100000], y[100000];
    size_t count = me->rank == 1 ? 10 : 100000;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    EXPECT(me, coll_allreduce(x, y, count, COLL_I32, COLL_SUM, comm, NULL),
           COLL_ERR_MISMATCH, "allreduce #2 (10 i32, sum)");
    WORLD_CHECK(me,
                strstr(coll_last_error(), "allreduce #2 (100000 i32, sum)"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(calls_that_differ_in_their_channel_are_told)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(2 + _i / 2, differ, NULL, DEADLINE), 0);
}
END_TEST

/* A small one is a large one on rank 1, which finds in its place the next one of
 * rank 0: it is the first that is told. */
static int differ_first(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[100000], y[100000];
    size_t count = me->rank == 1 ? 100000 : 10;
    int rc;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    rc = coll_broadcast(x, x, count, COLL_I32, 0, comm, NULL);
    if (me->rank == 0 && rc == COLL_OK)
        rc = coll_allreduce(x, y, 100000, COLL_I32, COLL_SUM, comm, NULL);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "broadcast #2 (10 i32, root 0)");
    WORLD_CHECK(me,
                strstr(coll_last_error(), "broadcast #2 (100000 i32, root 0)"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(the_first_calls_that_differ_are_told)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, differ_first, NULL, DEADLINE), 0);
}
END_TEST

/* Two that run at once, and one that waits behind each, when rank 1 dies. */
static int die_amid_all(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[SMALL], y[2][SMALL];
    struct coll_args small[2] = {sum_of(x, y[0], SMALL),
                                 sum_of(x, y[1], SMALL)};
    struct coll_request *requests[2];
    struct large large[2];

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 1) {
        WORLD_CHECK(me, world_await_through(me, 3, patient(DEADLINE / 2)));
        kill(getpid(), SIGKILL);
    }
    for (int k = 0; k < 2; k++) {
        WORLD_CHECK(me, !start_large(me, &large[k], comm));
        WORLD_CHECK(me, !coll_request_create(&small[k], comm, &requests[k]));
        WORLD_CHECK(me, !coll_start(requests[k]));
    }
    world_through(me);
    for (int k = 0; k < 2; k++) {
        EXPECT(me, coll_wait(requests[k], 0), COLL_ERR_PEER, "rank 1 ");
        EXPECT(me, coll_wait(large[k].request, 0), COLL_ERR_PEER, "rank 1 ");
        WORLD_CHECK(me, !coll_request_destroy(requests[k]));
        WORLD_CHECK(me, !free_large(me, &large[k]));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_death_ends_all_that_is_under_way)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(4, die_amid_all, NULL, DEADLINE), 1);
}
END_TEST

int main(void)
{
    int is_quick = getenv("TEST_QUICK") != NULL;
    Suite *suite = suite_create("channel");
    TCase *c = tcase_create("channel");

    tcase_set_timeout(c, patient(3 * DEADLINE));
    tcase_add_loop_test(c, a_small_one_does_not_wait_for_a_large_one, 0, 8);
    tcase_add_loop_test(c, none_overtakes_where_that_is_not_wanted, 0, 4);
    tcase_add_loop_test(c, messages_of_two_ranks_go_beside_collectives, 0, 2);
    tcase_add_loop_test(c, random_operations_end_well_in_any_order, 0,
                        is_quick ? 8 : 24);
    tcase_add_loop_test(c, what_is_fused_for_one_channel_leaves_the_other_alone,
                        0, 2);
    tcase_add_loop_test(c, calls_that_differ_in_their_channel_are_told, 0, 4);
    tcase_add_loop_test(c, the_first_calls_that_differ_are_told, 0, 2);
    tcase_add_loop_test(c, a_death_ends_all_that_is_under_way, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
