/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tune_judge.c - what coll_tune makes of times: of a quiet machine, of a
 * loaded one, and of such as say nothing. */
#include "tools/coll_tune.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

#define STRIDE 72
#define QUIET 9
#define US 1e-6

/* A row of two candidates, and barriers behind them. */
struct sample {
    struct tune_row row;
    double times[3 * STRIDE];
};

/* n rounds about these times, each up to `noise` times as long: the longer the
 * rarer, as beside other programs. */
static void fill(struct sample *s, int n, const double us[3], double noise)
{
    unsigned seed = 3;

    s->row = (struct tune_row){.n = 2, .runs_ahead = 1};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < n; i++) {
            double x = (double)rand_r(&seed) / RAND_MAX;

            s->times[c * STRIDE + i] = us[c] * US * (1 + (noise - 1) * x * x);
        }
}

START_TEST(a_quiet_machine_tells_the_faster_one)
{
    static const double us[] = {12, 8, 5};
    struct sample s;

    fill(&s, QUIET, us, 1.1);
    tune_judge(&s.row, s.times, QUIET, STRIDE, 0.25);
    ck_assert(!s.row.is_noise);
    ck_assert_int_eq(s.row.best, 1);
    ck_assert_int_eq(s.row.rounds, QUIET);
    ck_assert_double_eq_tol(s.row.candidates[0].measured, 7 * US, 1 * US);
    ck_assert_double_eq_tol(s.row.candidates[1].measured, 3 * US, 1 * US);
    ck_assert(s.row.candidates[1].error < 1 * US);
}
END_TEST

/* What was written as "measured 0.00, best". */
START_TEST(what_takes_less_than_the_barriers_is_noise)
{
    static const double us[] = {12, 4, 5};
    struct sample s;

    fill(&s, QUIET, us, 1.1);
    tune_judge(&s.row, s.times, QUIET, STRIDE, 10);
    ck_assert(s.row.is_noise);
    ck_assert(s.row.candidates[1].measured <= s.row.candidates[1].error);
}
END_TEST

START_TEST(a_loaded_machine_is_noise)
{
    static const double us[] = {12, 8, 5};
    struct sample s;

    fill(&s, QUIET, us, 50);
    tune_judge(&s.row, s.times, QUIET, STRIDE, 0.25);
    ck_assert(s.row.is_noise);
}
END_TEST

START_TEST(more_rounds_tell_what_few_do_not)
{
    static const double us[] = {12, 8, 5};
    struct sample s;

    fill(&s, STRIDE, us, 3.2);
    tune_judge(&s.row, s.times, QUIET, STRIDE, 0.12);
    ck_assert(s.row.is_noise);
    fill(&s, STRIDE, us, 3.2);
    tune_judge(&s.row, s.times, STRIDE, STRIDE, 0.12);
    ck_assert(!s.row.is_noise);
    ck_assert_int_eq(s.row.best, 1);
}
END_TEST

START_TEST(nothing_measured_is_noise)
{
    struct sample s = {.row = {.n = 0}};
    double one[] = {3 * US};
    struct tune_spread spread = tune_spread_of(one, 1);

    tune_judge(&s.row, s.times, QUIET, STRIDE, 0.25);
    ck_assert(s.row.is_noise);
    ck_assert(spread.median == 3 * US && spread.error == 0);
    ck_assert(tune_spread_of(one, 0).error > 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tune_judge");
    TCase *cases = tcase_create("judge");

    tcase_add_test(cases, a_quiet_machine_tells_the_faster_one);
    tcase_add_test(cases, what_takes_less_than_the_barriers_is_noise);
    tcase_add_test(cases, a_loaded_machine_is_noise);
    tcase_add_test(cases, more_rounds_tell_what_few_do_not);
    tcase_add_test(cases, nothing_measured_is_noise);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
