/* SPDX-License-Identifier: BSD-3-Clause */
/* test_op.c - operations, above all the caller's own: handles, premul, functions that
 * commute or not. */
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/plan/problem_op.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60
#define COUNT 1000

/* ---- handles ------------------------------------------------------------- */

static void add(const void *left, const void *right, void *out, size_t count,
                enum coll_type type, void *arg)
{
    const int32_t *a = left, *b = right;
    int32_t *c = out;

    ck_assert(type == COLL_I32 && count > 0);
    for (size_t i = 0; i < count; i++)
        c[i] = (int32_t)((uint32_t)a[i] + (uint32_t)b[i]);
    if (arg)
        ++*(int *)arg;
}

START_TEST(a_handle_stands_for_what_was_made)
{
    double half = 0.5, got;
    enum coll_op premul, user;
    struct coll__op op;
    int arg;

    ck_assert(!coll_op_create_premul(&half, COLL_F64, &premul));
    ck_assert(!coll_op_create_user(add, &arg, 2, &user));
    ck_assert_int_ge(premul, COLL_N_OPS);
    ck_assert_str_eq(coll_op_name(premul), "premul");
    ck_assert_str_eq(coll_op_name(user), "user");
    ck_assert(!coll__op_get(premul, &op));
    memcpy(&got, op.pre.number, sizeof(got));
    ck_assert(op.is_premul && op.pre.is_set && op.base == COLL_SUM &&
              got == 0.5);
    ck_assert(coll__op_takes(&op, COLL_F64) && !coll__op_takes(&op, COLL_F32));
    ck_assert(!coll__op_get(user, &op));
    ck_assert(op.fn == add && op.arg == &arg && op.commutes == 1);
    ck_assert(coll__op_takes(&op, COLL_F16));
    ck_assert(!coll_op_destroy(premul) && !coll_op_destroy(user));
}
END_TEST

START_TEST(a_destroyed_handle_is_noticed_though_its_slot_is_used_again)
{
    enum coll_op first, next;
    struct coll__op op;

    ck_assert(!coll_op_create_user(add, NULL, 1, &first));
    ck_assert(!coll_op_destroy(first));
    for (int i = 0; i < 2500; i++) { /* each slot at least twice */
        ck_assert(!coll_op_create_user(add, NULL, 1, &next));
        ck_assert(next != first && coll__op_get(first, &op));
        ck_assert(!coll_op_destroy(next));
    }
    ck_assert_str_eq(coll_op_name(first), "?");
    ck_assert_int_eq(coll_op_destroy(first), COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "destroyed before"));
}
END_TEST

START_TEST(there_is_room_for_a_thousand)
{
    enum coll_op ops[1000], one = COLL_MIN;

    for (int i = 0; i < 1000; i++)
        ck_assert(!coll_op_create_user(add, NULL, 1, &ops[i]));
    ck_assert_int_eq(coll_op_create_user(add, NULL, 1, &one), COLL_ERR_NOMEM);
    ck_assert(one == COLL_MIN && strstr(coll_last_error(), "coll_op_destroy"));
    ck_assert(!coll_op_destroy(ops[500]));
    ck_assert(!coll_op_create_user(add, NULL, 1, &one));
    ck_assert(one != ops[500] && !coll_op_destroy(one));
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(coll_op_destroy(ops[i]),
                         i == 500 ? COLL_ERR_INVALID : COLL_OK);
}
END_TEST

static atomic_int is_enough;

/* Each thread's own number comes back by each of its handles. */
static void *make_and_end(void *arg)
{
    enum coll_op ops[8];
    struct coll__op op;
    size_t n_wrong = 0;

    do {
        for (int i = 0; i < 8; i++)
            n_wrong += coll_op_create_user(add, arg, 1, &ops[i]) != COLL_OK;
        for (int i = 0; i < 8; i++)
            n_wrong += coll__op_get(ops[i], &op) || op.arg != arg;
        for (int i = 0; i < 8; i++)
            n_wrong += coll_op_destroy(ops[i]) != COLL_OK;
    } while (!atomic_load(&is_enough));
    return (void *)n_wrong;
}

START_TEST(threads_and_their_children_make_operations_side_by_side)
{
    pthread_t threads[4];
    int names[4], status;
    void *n_wrong;

    for (int t = 0; t < 4; t++)
        ck_assert(!pthread_create(&threads[t], NULL, make_and_end, &names[t]));
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();

        if (!pid) {
            atomic_store(&is_enough, 1);
            _exit(make_and_end(&i) != NULL);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    atomic_store(&is_enough, 1);
    for (int t = 0; t < 4; t++) {
        ck_assert(!pthread_join(threads[t], &n_wrong));
        ck_assert_ptr_null(n_wrong);
    }
}
END_TEST

START_TEST(bad_arguments_get_a_sentence)
{
    enum coll_op op = COLL_MAX;
    int x = 1;

    ck_assert_int_eq(coll_op_create_premul(NULL, COLL_I32, &op),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "scalar is NULL"));
    ck_assert_int_eq(coll_op_create_premul(&x, COLL_I32, NULL),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "op is NULL"));
    ck_assert_int_eq(coll_op_create_premul(&x, COLL_N_TYPES, &op),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "no element type"));
    ck_assert_int_eq(coll_op_create_premul(&x, COLL_BOOL, &op),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "bool is no number"));
    ck_assert_int_eq(coll_op_create_premul(&x, COLL_F32_I32, &op),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "f32_i32 is no number"));
    ck_assert_int_eq(coll_op_create_user(NULL, NULL, 1, &op),
                     COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "fn is NULL"));
    ck_assert_int_eq(coll_op_create_user(add, NULL, 1, NULL),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll_op_destroy(COLL_SUM), COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "built-in"));
    ck_assert_int_eq(coll_op_destroy((enum coll_op)-1), COLL_ERR_INVALID);
    ck_assert(op == COLL_MAX);
}
END_TEST

/* What the choice of algorithm gets to know. */
START_TEST(a_problem_gets_the_order_that_its_operation_needs)
{
    struct coll__problem pb = {.type = COLL_F32, .in_place = 1};
    enum coll_op mine;
    struct coll__op op;

    for (int o = 0; o < COLL_N_OPS; o++) {
        int matters = o == COLL_SUM || o == COLL_PROD || o == COLL_AVG;

        coll__op_get((enum coll_op)o, &op);
        pb.type = COLL_BF16;
        coll__problem_set_op(&op, 1, &pb);
        ck_assert_int_eq(pb.order, matters ? ORDER_CANONICAL : ORDER_FREE);
        ck_assert(pb.op == (enum coll_op)o && pb.in_place && !pb.is_user_op);
        coll__problem_set_op(&op, 0, &pb);
        ck_assert_int_eq(pb.order, ORDER_FREE);
        pb.type = COLL_I64;
        coll__problem_set_op(&op, 1, &pb);
        ck_assert_int_eq(pb.order, ORDER_FREE);
    }
    for (int commutes = 0; commutes < 2; commutes++)
        for (int is_on = 0; is_on < 2; is_on++) {
            ck_assert(!coll_op_create_user(add, NULL, commutes, &mine));
            coll__op_get(mine, &op);
            coll__problem_set_op(&op, is_on, &pb);
            ck_assert_int_eq(pb.order, !commutes ? ORDER_RANKS
                                       : is_on   ? ORDER_CANONICAL
                                                 : ORDER_FREE);
            ck_assert(pb.is_user_op && pb.op == COLL_SUM && pb.in_place);
        }
    ck_assert(!coll_op_create_premul("\0\0\200\77", COLL_F32, &mine));
    coll__op_get(mine, &op);
    pb.type = COLL_F32;
    coll__problem_set_op(&op, 1, &pb);
    ck_assert_int_eq(pb.order, ORDER_CANONICAL);
    ck_assert(!pb.is_user_op && pb.op == COLL_SUM && !pb.in_place);
}
END_TEST

/* ---- premul -------------------------------------------------------------- */

/* Rank r brings i + r, times r + 1: also in place, and two scalars in turn for
 * one shape. */
static int premul(struct world_rank *me, struct coll_comm *comm)
{
    float in[COUNT], out[COUNT], factors[2] = {(float)me->rank + 1, -2};
    enum coll_op ops[2];

    for (int k = 0; k < 2; k++)
        WORLD_CHECK(me, !coll_op_create_premul(&factors[k], COLL_F32, &ops[k]));
    for (int turn = 0; turn < 8; turn++) {
        int which = turn % 2, in_place = turn / 2 % 2;
        float *to = in_place ? in : out;

        for (int i = 0; i < COUNT; i++)
            in[i] = (float)(i + me->rank);
        WORLD_CHECK(me, !coll_allreduce(in, to, COUNT, COLL_F32, ops[which],
                                        comm, NULL));
        for (int i = 0; i < COUNT; i++) {
            float want = 0;

            for (int r = 0; r < me->size; r++)
                want += (float)(i + r) * (which ? -2 : (float)r + 1);
            WORLD_CHECK(me, to[i] == want);
            WORLD_CHECK(me, in_place || in[i] == (float)(i + me->rank));
        }
    }
    WORLD_CHECK(me, !coll_op_destroy(ops[0]) && !coll_op_destroy(ops[1]));
    EXPECT(me, coll_allreduce(in, out, COUNT, COLL_F32, ops[0], comm, NULL),
           COLL_ERR_INVALID, "is no operation");
    return 0;
}

START_TEST(premul_scales_each_input_by_its_ranks_scalar)
{
    ck_assert_int_eq(world_fork_joined(_i, premul, NULL, DEADLINE), 0);
    setenv("COLL_CHUNK", "64", 1);
    setenv("COLL_ALGO", "ring", 1);
    ck_assert_int_eq(world_fork_joined(_i, premul, NULL, DEADLINE), 0);
}
END_TEST

/* A request keeps the scalar when the handle is gone, and integers wrap. */
static int premul_request(struct world_rank *me, struct coll_comm *comm)
{
    uint8_t in[7] = {0, 1, 2, 3, 100, 200, 255}, out[7], factor = 131;
    struct coll_args args = {.size = sizeof(args), .type = COLL_U8, .in = in,
                             .out = out, .count = 7};
    struct coll_request *request;

    WORLD_CHECK(me, !coll_op_create_premul(&factor, COLL_U8, &args.op));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    args.type = COLL_I8;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "premul was made for u8, not for i8");
    WORLD_CHECK(me, !coll_op_destroy(args.op));
    for (int turn = 0; turn < 3; turn++) {
        in[0] = (uint8_t)turn;
        WORLD_CHECK(me, !coll_start(request) && !coll_wait(request, 0));
        for (int i = 0; i < 7; i++)
            WORLD_CHECK(me, out[i] == (uint8_t)(me->size * in[i] * 131));
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    return 0;
}

START_TEST(a_request_keeps_its_scalar)
{
    ck_assert_int_eq(world_fork_joined(_i, premul_request, NULL, DEADLINE), 0);
}
END_TEST

/* ---- the caller's functions ---------------------------------------------- */

static int user_sum(struct world_rank *me, struct coll_comm *comm)
{
    int32_t in[COUNT], out[COUNT], n_calls = 0;
    enum coll_op op;

    WORLD_CHECK(me, !coll_op_create_user(add, &n_calls, 1, &op));
    for (int i = 0; i < COUNT; i++)
        in[i] = i * (me->rank + 1);
    WORLD_CHECK(me, !coll_allreduce(in, out, COUNT, COLL_I32, op, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, out[i] == i * me->size * (me->size + 1) / 2);
    if (me->size > 1 && me->rank == 0)
        WORLD_CHECK(me, n_calls > 0);
    WORLD_CHECK(me, !coll_op_destroy(op));
    return 0;
}

/* What a function of the caller's was told that called the library. */
static struct {
    struct coll_comm *comm;
    struct coll_request *request;
    int n_calls, n_refused;
} caller;

static void refused(int rc, const char *who)
{
    caller.n_calls++;
    caller.n_refused += rc == COLL_ERR_INVALID &&
                        strstr(coll_last_error(), who) &&
                        strstr(coll_last_error(), "coll_op_create_user");
}

static void call_and_add(const void *left, const void *right, void *out,
                         size_t count, enum coll_type type, void *arg)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct coll_comm *comm = caller.comm, *other;
    struct coll_request *request;
    int32_t x = 1, y;

    refused(coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, comm, NULL),
            "allreduce: ");
    refused(coll_request_create(&args, comm, &request), "coll_request_create");
    refused(coll_request_destroy(caller.request), "coll_request_destroy");
    refused(coll_comm_dup(comm, &other), "coll_comm_dup");
    refused(coll_comm_mem_stats(comm, &stats), "coll_comm_mem_stats");
    refused(coll_comm_destroy(comm), "coll_comm_destroy");
    add(left, right, out, count, type, arg);
}

/* It is refused there, rather than waited for
 * by itself; the operation goes on. */
static int call_within(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    int32_t *in = calloc(50000, 4), *out = calloc(50000, 4), n_adds = 0;
    size_t count = *(int *)me->arg ? 50000 : 1;
    enum coll_op op;

    WORLD_CHECK(me, !coll_comm_create_oob(&caller.comm, &me->oob, NULL));
    WORLD_CHECK(me, !coll_request_create(&args, caller.comm, &caller.request));
    WORLD_CHECK(me, !coll_op_create_user(call_and_add, &n_adds, 1, &op));
    for (size_t i = 0; i < count; i++)
        in[i] = me->rank + 1;
    for (int n = 0; n < 2; n++)
        WORLD_CHECK(me, !coll_allreduce(in, out, count, COLL_I32, op,
                                        caller.comm, NULL));
    WORLD_CHECK(me, out[0] == 3 && out[count - 1] == 3);
    WORLD_CHECK(me, caller.n_calls == caller.n_refused);
    WORLD_CHECK(me, !coll_request_destroy(caller.request));
    WORLD_CHECK(me, !coll_op_destroy(op));
    WORLD_CHECK(me, !coll_comm_destroy(caller.comm));
    free(in);
    free(out);
    return 0;
}

/* _i: with many elements */
START_TEST(a_function_that_calls_the_library_is_refused)
{
    ck_assert_int_eq(world_fork(2, call_within, &_i, DEADLINE), 0);
}
END_TEST

START_TEST(a_function_that_commutes_may_use_any_algorithm)
{
    static const char *const names[] = {"", "ring", "recursive_doubling",
                                        "binomial"};

    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        setenv("COLL_ALGO", names[k], 1);
        setenv("COLL_CHUNK", k % 2 ? "100" : "0", 1);
        ck_assert_int_eq(world_fork_joined(_i, user_sum, NULL, DEADLINE), 0);
    }
}
END_TEST

/* x -> a x + b modulo a prime, a in the upper half: composition is associative
 * and does not commute. */
#define PRIME 65521u

static uint64_t compose(uint64_t left, uint64_t right)
{
    uint64_t a = left >> 32, b = left & 0xffffffff;
    uint64_t c = right >> 32, d = right & 0xffffffff;

    return (c * a % PRIME) << 32 | (c * b + d) % PRIME;
}

static void compose_all(const void *left, const void *right, void *out,
                        size_t count, enum coll_type type, void *arg)
{
    const uint64_t *a = left, *b = right;
    uint64_t *c = out;

    (void)type;
    (void)arg;
    for (size_t i = 0; i < count; i++)
        c[i] = compose(a[i], b[i]);
}

static uint64_t line_of(int rank, int i)
{
    return (uint64_t)(2 + 7 * rank + i) << 32 | (unsigned)(100 * rank + 3 * i);
}

static int in_order(struct world_rank *me, struct coll_comm *comm)
{
    uint64_t in[COUNT], out[COUNT];
    enum coll_op op;

    WORLD_CHECK(me, !coll_op_create_user(compose_all, NULL, 0, &op));
    for (int i = 0; i < COUNT; i++)
        in[i] = line_of(me->rank, i);
    WORLD_CHECK(me, !coll_allreduce(in, out, COUNT, COLL_U64, op, comm, NULL));
    for (int turn = 0; turn < 2; turn++) { /* the second is of in, in place */
        const uint64_t *got = turn ? in : out;

        if (turn)
            WORLD_CHECK(me, !coll_allreduce(in, in, COUNT, COLL_U64, op, comm,
                                            NULL));
        for (int i = 0; i < COUNT; i++) {
            uint64_t want = line_of(0, i);

            for (int r = 1; r < me->size; r++)
                want = compose(want, line_of(r, i));
            WORLD_CHECK(me, got[i] == want);
        }
    }
    return 0;
}

START_TEST(a_function_that_does_not_commute_gets_ranks_in_order)
{
    static const char *const names[] = {"", "ring", "recursive_doubling",
                                        "binomial"};

    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        setenv("COLL_ALGO", names[k], 1);
        ck_assert_int_eq(world_fork_joined(_i, in_order, NULL, DEADLINE), 0);
    }
}
END_TEST

/* ---- over ranks ---------------------------------------------------------- */

static int bits_and_truth(struct world_rank *me, struct coll_comm *comm)
{
    static const enum coll_op ops[] = {COLL_BAND, COLL_BOR, COLL_BXOR,
                                       COLL_LAND, COLL_LOR, COLL_LXOR};
    uint16_t in[4] = {0xff0f, (uint16_t)(1 << me->rank), 0,
                      (uint16_t)(me->rank != 1)};
    uint16_t n = (uint16_t)me->size, ones = (uint16_t)((1 << n) - 1);
    const uint16_t want[6][4] = {{0xff0f, 0, 0, 0},
                                 {0xff0f, ones, 0, 1},
                                 {n % 2 ? 0xff0f : 0, ones, 0, (n - 1) % 2},
                                 {1, 1, 0, 0},
                                 {1, 1, 0, 1},
                                 {n % 2, n % 2, 0, (n - 1) % 2}};
    uint16_t out[4];

    for (int k = 0; k < 6; k++) {
        WORLD_CHECK(me, !coll_allreduce(in, out, 4, COLL_U16, ops[k], comm,
                                        NULL));
        WORLD_CHECK(me, !memcmp(out, want[k], sizeof(out)));
    }
    EXPECT(me, coll_allreduce(in, out, 4, COLL_BF16, COLL_BOR, comm, NULL),
           COLL_ERR_INVALID, "bor is for integers and bool, not for bf16");
    return 0;
}

START_TEST(bits_and_truth_combine_over_ranks)
{
    ck_assert_int_eq(world_fork_joined(_i, bits_and_truth, NULL, DEADLINE), 0);
}
END_TEST

/* One rank has a function of its own where the others sum. */
static int kinds_differ(struct world_rank *me)
{
    struct coll_comm *comm;
    enum coll_op op = COLL_SUM;
    int x = 1, y, rc;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_op_create_user(add, NULL, 1, &op));
    rc = coll_allreduce(&x, &y, 1, COLL_I32, op, comm, NULL);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "1 i32, user");
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(ranks_with_operations_of_different_kinds_are_told_so)
{
    ck_assert_int_eq(world_fork(2, kinds_differ, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op");
    TCase *c = tcase_create("op");
    int end = getenv("TEST_QUICK") ? 6 : 10;

    patient_timeout(40);
    tcase_set_timeout(c, 8 * DEADLINE);
    tcase_add_test(c, a_handle_stands_for_what_was_made);
    tcase_add_test(
        c, a_destroyed_handle_is_noticed_though_its_slot_is_used_again);
    tcase_add_test(c, there_is_room_for_a_thousand);
    tcase_add_test(c, threads_and_their_children_make_operations_side_by_side);
    tcase_add_test(c, bad_arguments_get_a_sentence);
    tcase_add_test(c, a_problem_gets_the_order_that_its_operation_needs);
    tcase_add_loop_test(c, premul_scales_each_input_by_its_ranks_scalar, 1,
                        end);
    tcase_add_loop_test(c, a_request_keeps_its_scalar, 1, 4);
    tcase_add_loop_test(c, a_function_that_calls_the_library_is_refused, 0, 2);
    tcase_add_loop_test(c, a_function_that_commutes_may_use_any_algorithm, 1,
                        end);
    tcase_add_loop_test(c, a_function_that_does_not_commute_gets_ranks_in_order,
                        1, end);
    tcase_add_loop_test(c, bits_and_truth_combine_over_ranks, 2, end);
    tcase_add_test(c, ranks_with_operations_of_different_kinds_are_told_so);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
