/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_rate.c - learning rates: warm-up, then a schedule. */
#include "tests/support/suite.h"
#include "trainer/rate.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Return the rate that these words give to 8 ranks of 4 steps an epoch. */
static struct learning_rate rate_of(int argc, const char *const *words)
{
    static char text[16][32];
    char *argv[16] = {text[0]};
    struct args args;
    struct learning_rate rate;

    for (int i = 0; i < argc; i++) {
        strncpy(text[i + 1], words[i], sizeof(text[0]) - 1);
        argv[i + 1] = text[i + 1];
    }
    ck_assert_int_eq(args_parse(&args, argc + 1, argv), 0);
    rate_init(&rate, &args, 8, 4);
    return rate;
}

#define RATE(...)                                                              \
    rate_of((int)(sizeof((const char *const[]){__VA_ARGS__}) /                 \
                  sizeof(const char *)),                                       \
            (const char *const[]){__VA_ARGS__})

static void assert_rates(const struct learning_rate *r, const double *want,
                         int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(rate_at(r, (uint64_t)i + 1), want[i], 1e-9);
}

START_TEST(the_full_rate_is_that_of_a_rank_times_the_scale)
{
    struct learning_rate linear = RATE("--lr=0.01");
    struct learning_rate root = RATE("--lr=0.01", "--lr-scale=sqrt");
    struct learning_rate none = RATE("--opt=sgd", "--lr-scale=none");

    ck_assert_double_eq(rate_full(&linear), 0.08);
    ck_assert_double_eq_tol(rate_full(&root), 0.0282842712, 1e-9);
    ck_assert_double_eq(rate_full(&none), 0.01);
    ck_assert_double_eq(rate_at(&none, 1), 0.01);
    ck_assert_double_eq(rate_at(&none, 12), 0.01);
}
END_TEST

/* In steps, and in epochs of 4 steps: 1 + 7 step / 8 times the rate of one rank. */
START_TEST(row16_warm_up_goes_from_one_ranks_rate_to_that_of_all)
{
    static const double want[] = {0.01875, 0.0275,  0.03625, 0.045, 0.05375,
                                  0.0625,  0.07125, 0.08,    0.08};
    struct learning_rate steps = RATE("--lr=0.01", "--warmup-steps=8");
    struct learning_rate epochs = RATE("--lr=0.01", "--warmup-epochs=2");

    assert_rates(&steps, want, 9);
    assert_rates(&epochs, want, 9);
}
END_TEST

/* As torch.optim.lr_scheduler.StepLR(step_size=2, gamma=0.1), once an epoch. */
START_TEST(a_step_schedule_multiplies_after_whole_epochs)
{
    struct learning_rate r = RATE("--lr=0.01", "--lr-scale=none", "--epochs=5",
                                  "--lr-schedule=step:2,0.1");

    for (uint64_t step = 1; step <= 20; step++)
        ck_assert_double_eq_tol(rate_at(&r, step),
                                step <= 8    ? 0.01
                                : step <= 16 ? 0.001
                                             : 0.0001,
                                1e-12);
}
END_TEST

/* As CosineAnnealingLR(T_max=8), once a step: (1 + cos(pi s / 8)) / 2. */
START_TEST(a_cosine_goes_from_the_full_rate_to_none)
{
    static const double want[] = {1,   0.961939766, 0.853553391, 0.691341716,
                                  0.5, 0.308658284, 0.146446609, 0.038060234};
    struct learning_rate r =
        RATE("--lr=1", "--lr-scale=none", "--epochs=2", "--lr-schedule=cosine");

    assert_rates(&r, want, 8);
}
END_TEST

/* The epochs of a warm-up count for step:E,F; cosine takes the steps after it. */
START_TEST(a_schedule_begins_when_the_warm_up_is_over)
{
    static const double want[] = {0.275, 0.45,         0.625, 0.8,
                                  0.8,   0.6828427125, 0.4,   0.1171572875};
    struct learning_rate c = RATE("--lr=0.1", "--warmup-epochs=1", "--epochs=2",
                                  "--lr-schedule=cosine");
    struct learning_rate s = RATE("--lr=0.1", "--warmup-epochs=2", "--epochs=3",
                                  "--lr-schedule=step:1,0.5");

    assert_rates(&c, want, 8);
    ck_assert_double_eq_tol(rate_at(&s, 4), 0.1 * (7.0 / 2 + 1), 1e-12);
    ck_assert_double_eq_tol(rate_at(&s, 8), 0.8, 1e-12);
    ck_assert_double_eq_tol(rate_at(&s, 9), 0.2, 1e-12);
}
END_TEST

/* A run that is all warm-up has no step for the schedule. */
START_TEST(a_warm_up_longer_than_the_run_is_no_division_by_zero)
{
    struct learning_rate r = RATE("--lr=0.1", "--warmup-epochs=2", "--epochs=2",
                                  "--lr-schedule=cosine");

    ck_assert_double_eq_tol(rate_at(&r, 8), 0.8, 1e-12);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_rate");
    TCase *rate = suite_case(suite, "rate", 20);

    tcase_add_test(rate, the_full_rate_is_that_of_a_rank_times_the_scale);
    tcase_add_test(rate, row16_warm_up_goes_from_one_ranks_rate_to_that_of_all);
    tcase_add_test(rate, a_step_schedule_multiplies_after_whole_epochs);
    tcase_add_test(rate, a_cosine_goes_from_the_full_rate_to_none);
    tcase_add_test(rate, a_schedule_begins_when_the_warm_up_is_over);
    tcase_add_test(rate, a_warm_up_longer_than_the_run_is_no_division_by_zero);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
