/* SPDX-License-Identifier: BSD-3-Clause */
/* test_types.c - which types the operations take; over ranks, complex numbers, pairs of a
 * value and an index, and one function of the caller's for several types. */
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"
#include "lib/type/op.h"
#include "lib/util/util.h"

#include <check.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 60
#define COUNT 1000

static const char *const algorithms[] = {"", "ring", "recursive_doubling",
                                         "binomial"};

/* By each algorithm, on that many ranks. */
static void by_algorithms(int n,
                          int (*body)(struct world_rank *, struct coll_comm *))
{
    for (size_t k = 0; k < ARRAY_LEN(algorithms); k++) {
        setenv("COLL_ALGO", algorithms[k], 1);
        ck_assert_int_eq(world_fork_joined(n, body, NULL, DEADLINE), 0);
    }
}

/* ---- what goes together ---------------------------------------------------- */

/* By the types' names. */
static int is_refused(int type, int op)
{
    const char *name = coll_type_name((enum coll_type)type);
    int is_of_pairs = op == COLL_MINLOC || op == COLL_MAXLOC;

    if (strstr(name, "_i32"))
        return !is_of_pairs;
    if (name[0] == 'c')
        return op != COLL_SUM && op != COLL_PROD && op != COLL_AVG;
    if (type == COLL_BOOL)
        return is_of_pairs || op == COLL_AVG;
    if (op == COLL_BAND || op == COLL_BOR || op == COLL_BXOR)
        return strchr(name, 'f') != NULL;
    return is_of_pairs;
}

START_TEST(each_operation_takes_the_types_that_it_is_for)
{
    for (int o = 0; o < COLL_N_OPS; o++)
        for (int t = 0; t < COLL_N_TYPES; t++) {
            int is_wrong = is_refused(t, o);
            struct coll__op op;

            ck_assert_int_eq(coll__op_get((enum coll_op)o, &op), COLL_OK);
            ck_assert(!op.fn && op.commutes && op.base == (enum coll_op)o);
            ck_assert_int_eq(coll__op_takes(&op, (enum coll_type)t), !is_wrong);
        }
}
END_TEST

/* ---- complex numbers ------------------------------------------------------- */

/* In C's types: what a program passes. */
static int complex_numbers(struct world_rank *me, struct coll_comm *comm)
{
    double complex in[COUNT], out[COUNT], factor = 1 - 2 * I;
    float complex narrow[COUNT], sum[COUNT];
    double p = me->size, ranks = p * (p - 1) / 2;
    enum coll_op premul;

    for (int i = 0; i < COUNT; i++) {
        in[i] = me->rank + i * I;
        narrow[i] = (float)i - (float)me->rank * I;
    }
    factor *= me->rank + 1;
    WORLD_CHECK(me, !coll_op_create_premul(&factor, COLL_C128, &premul));
    WORLD_CHECK(
        me, !coll_allreduce(in, out, COUNT, COLL_C128, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(narrow, sum, COUNT, COLL_C64, COLL_AVG,
                                    comm, NULL));
    for (int i = 0; i < COUNT; i++) {
        WORLD_CHECK(me, creal(out[i]) == ranks && cimag(out[i]) == p * i);
        WORLD_CHECK(me, crealf(sum[i]) == (float)i);
        WORLD_CHECK(me, cimagf(sum[i]) == (float)-ranks / (float)p);
        in[i] = i + I;
    }
    WORLD_CHECK(me,
                !coll_allreduce(in, out, COUNT, COLL_C128, premul, comm, NULL));
    for (int i = 0; i < COUNT; i++) /* (i + I)(1 - 2I) = i + 2 + (1 - 2i)I */
        WORLD_CHECK(me, creal(out[i]) == (ranks + p) * (i + 2) &&
                            cimag(out[i]) == (ranks + p) * (1 - 2 * i));
    WORLD_CHECK(me, !coll_op_destroy(premul));
    return 0;
}

/* The product of p times 1 + 2i. */
static int complex_products(struct world_rank *me, struct coll_comm *comm)
{
    float complex in[COUNT], out[COUNT];
    double re = 1, im = 0;

    for (int i = 0; i < COUNT; i++)
        in[i] = 1 + 2 * I;
    for (int r = 0; r < me->size; r++) {
        double last = re;

        re -= 2 * im;
        im += 2 * last;
    }
    WORLD_CHECK(
        me, !coll_allreduce(in, out, COUNT, COLL_C64, COLL_PROD, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me,
                    crealf(out[i]) == (float)re && cimagf(out[i]) == (float)im);
    return 0;
}

/* _i: ranks */
START_TEST(complex_numbers_are_those_of_c)
{
    by_algorithms(_i, complex_numbers);
    by_algorithms(_i, complex_products);
}
END_TEST

/* ---- pairs ----------------------------------------------------------------- */

struct wide {
    double value;
    int32_t index;
};
struct narrow {
    float value;
    int32_t index;
};
struct whole {
    int32_t value, index;
};

/* What only shows if ranks combine in the same order in each algorithm. */
static int ties(struct world_rank *me, struct coll_comm *comm)
{
    int32_t last = me->size - 1;
    float zero = me->rank % 2 ? -0.0f : 0.0f, nan = nanf("5");
    struct narrow least[4], most[4],
        in[4] = {
            {7, 100 - me->rank}, /* all are equal */
            {zero, 3},           /* and with equal indices */
            {me->rank % 2 ? nan : -INFINITY, 2 - me->rank}, /* NaNs, if p > 1 */
            {(float)me->rank, me->rank}};

    WORLD_CHECK(me, !coll_allreduce(in, least, 4, COLL_F32_I32, COLL_MINLOC,
                                    comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(in, most, 4, COLL_F32_I32, COLL_MAXLOC,
                                    comm, NULL));
    WORLD_CHECK(me, least[0].value == 7 && least[0].index == 100 - last);
    WORLD_CHECK(me, most[0].value == 7 && most[0].index == 100 - last);
    WORLD_CHECK(me, least[1].value == 0 && least[1].index == 3);
    WORLD_CHECK(me, signbit(least[1].value) && !signbit(most[1].value));
    WORLD_CHECK(me, isnan(least[2].value) && isnan(most[2].value));
    WORLD_CHECK(me, least[2].index == 2 - (last - !(last % 2)));
    WORLD_CHECK(me, most[2].index == least[2].index);
    WORLD_CHECK(me, least[3].value == 0 && least[3].index == 0);
    WORLD_CHECK(me, most[3].value == (float)last && most[3].index == last);
    return 0;
}

/* The bytes behind the index are another number on each rank. */
static int padding(struct world_rank *me, struct coll_comm *comm)
{
    struct wide in[COUNT], out[COUNT], want[COUNT];
    struct whole ints[COUNT], last[COUNT];
    int p = me->size;

    memset(in, me->rank + 1, sizeof(in));
    memset(want, 0, sizeof(want));
    for (int i = 0; i < COUNT; i++) {
        in[i].value = ints[i].value = (i + me->rank) % p;
        in[i].index = ints[i].index = me->rank;
        want[i].index = (p - i % p) % p; /* of the rank that has 0 */
    }
    WORLD_CHECK(me, !coll_allreduce(in, out, COUNT, COLL_F64_I32, COLL_MINLOC,
                                    comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(ints, last, COUNT, COLL_I32_I32,
                                    COLL_MAXLOC, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, last[i].value == p - 1 &&
                            last[i].index == (want[i].index + p - 1) % p);
    WORLD_CHECK(me, !memcmp(out, want, sizeof(out)));
    return 0;
}

/* _i: ranks, 2 and more */
START_TEST(the_first_of_equal_pairs_is_taken_whatever_the_order)
{
    by_algorithms(_i, ties);
    by_algorithms(_i, padding);
}
END_TEST

/* ---- one function for several types ------------------------------------------ */

/* The element that has the largest bytes. */
static void largest(const void *left, const void *right, void *out,
                    size_t count, enum coll_type type, void *arg)
{
    size_t size = coll_type_size(type);
    const char *a = left, *b = right;

    ++((int *)arg)[type];
    for (size_t i = 0; i < count * size; i += size)
        memmove((char *)out + i, memcmp(a + i, b + i, size) < 0 ? b + i : a + i,
                size);
}

/* One handle, in calls that take turns. */
static int several_types(struct world_rank *me, struct coll_comm *comm)
{
    _Alignas(16) unsigned char in[16 * COUNT], out[16 * COUNT];
    int n_calls[COLL_N_TYPES] = {0};
    enum coll_op op;

    WORLD_CHECK(me, !coll_op_create_user(largest, n_calls, 1, &op));
    memset(in, me->rank + 1, sizeof(in));
    for (int turn = 0; turn < 2; turn++)
        for (int t = 0; t < COLL_N_TYPES; t++) {
            enum coll_type type = (enum coll_type)t;

            memset(out, 0, sizeof(out));
            WORLD_CHECK(me,
                        !coll_allreduce(in, out, COUNT, type, op, comm, NULL));
            for (size_t i = 0; i < COUNT * coll_type_size(type); i++)
                WORLD_CHECK(me, out[i] == me->size);
            WORLD_CHECK(me, me->rank || n_calls[t]);
        }
    WORLD_CHECK(me, !coll_op_destroy(op));
    return 0;
}

/* _i: ranks, 2 and more */
START_TEST(one_function_serves_every_type) { by_algorithms(_i, several_types); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("types");
    TCase *c = tcase_create("types");

    patient_timeout(40);
    tcase_set_timeout(c, 8 * DEADLINE);
    tcase_add_test(c, each_operation_takes_the_types_that_it_is_for);
    tcase_add_loop_test(c, complex_numbers_are_those_of_c, 1, 6);
    tcase_add_loop_test(c, the_first_of_equal_pairs_is_taken_whatever_the_order,
                        2, 6);
    tcase_add_loop_test(c, one_function_serves_every_type, 2, 4);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
