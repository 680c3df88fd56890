/* SPDX-License-Identifier: BSD-3-Clause */
/* test_scratch.c - the pool of scratch: how much of a device's memory it holds, and how
 * often it asks for more. */
#include "lib/device/device.h"
#include "lib/run/scratch.h"
#include "tests/support/suite.h"

#include <stdint.h>

#define MIB ((size_t)1 << 20)

static size_t n_held;
static int n_asked;

static void *hold(size_t len)
{
    n_asked++;
    if (len > (size_t)1 << 40)
        return NULL;
    n_held += len;
    return malloc(1);
}

static void let_go(void *ptr, size_t len)
{
    n_held -= len;
    free(ptr);
}

static const struct coll__device counting = {.alloc = hold, .free = let_go};

static void take_and_put(struct coll__pool *pool, size_t len)
{
    struct coll__scratch *scratch;

    ck_assert_int_eq(coll__scratch_take(pool, &counting, len, &scratch), 0);
    ck_assert_uint_ge(scratch->len, len);
    coll__scratch_put(pool, scratch);
}

START_TEST(one_at_a_time_needs_one_as_long_as_the_longest)
{
    struct coll__pool pool = {0};

    for (int k = 0; k < 2; k++)
        for (size_t len = 1; len <= 32 * MIB; len += len / 3 + 1)
            take_and_put(&pool, len);
    ck_assert_uint_eq(n_held, 32 * MIB);
    n_asked = 0;
    for (size_t len = 1; len <= 32 * MIB; len += len / 3 + 1)
        take_and_put(&pool, len);
    ck_assert_int_eq(n_asked, 0);
    coll__pool_fini(&pool);
    ck_assert_uint_eq(n_held, 0);
}
END_TEST

START_TEST(a_long_one_goes_when_nobody_needs_it)
{
    struct coll__pool pool = {0};

    for (int k = 0; k < 5000; k++) { /* now and then it is needed */
        take_and_put(&pool, k % 900 ? MIB : 500 * MIB);
        ck_assert_uint_eq(n_held, 512 * MIB);
    }
    ck_assert_int_eq(n_asked, 1);
    for (int k = 0; k < 1100; k++)
        take_and_put(&pool, MIB);
    ck_assert_uint_eq(n_held, MIB);
    coll__pool_fini(&pool);
    ck_assert_uint_eq(n_held, 0);
}
END_TEST

START_TEST(many_at_once_are_kept_up_to_a_bound)
{
    enum { N = 100 };
    struct coll__scratch *taken[N];
    struct coll__pool pool = {0};

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(
                coll__scratch_take(&pool, &counting, 4 * MIB, &taken[i]), 0);
        ck_assert_uint_eq(n_held, N * 4 * MIB);
        for (int i = 0; i < N; i++)
            coll__scratch_put(&pool, taken[i]);
        ck_assert_uint_ge(n_held, 64 * MIB);
        ck_assert_uint_le(n_held, 68 * MIB);
    }
    coll__pool_fini(&pool);
    ck_assert_uint_eq(n_held, 0);
}
END_TEST

START_TEST(more_than_there_is_is_told)
{
    struct coll__scratch *scratch;
    struct coll__pool pool = {0};

    take_and_put(&pool, 100);
    ck_assert_int_eq(
        coll__scratch_take(&pool, &counting, (size_t)1 << 50, &scratch),
        COLL_ERR_NOMEM);
    ck_assert_int_eq(coll__scratch_take(&pool, &counting, SIZE_MAX, &scratch),
                     COLL_ERR_NOMEM);
    take_and_put(&pool, 100);
    coll__pool_fini(&pool);
    ck_assert_uint_eq(n_held, 0);
}
END_TEST

static Suite *scratch_suite(void)
{
    Suite *suite = suite_create("scratch");
    TCase *tc = suite_case(suite, "pool", 60);

    tcase_add_test(tc, one_at_a_time_needs_one_as_long_as_the_longest);
    tcase_add_test(tc, a_long_one_goes_when_nobody_needs_it);
    tcase_add_test(tc, many_at_once_are_kept_up_to_a_bound);
    tcase_add_test(tc, more_than_there_is_is_told);
    return suite;
}

int main(void) { return suite_run(scratch_suite()); }
