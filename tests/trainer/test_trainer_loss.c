/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_loss.c - softmax and cross-entropy, and their gradients. */
#include "tests/support/suite.h"
#include "trainer/device.h"
#include "trainer/layers.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* Judge n rows of 10 scores. */
static struct model_score judge(const float *scores,
                                const unsigned char *labels, int n,
                                double smoothing, float *gradients)
{
    struct loss_job job = {.scores = scores,
                           .labels = labels,
                           .n = n,
                           .classes = 10,
                           .scale = 1 / (float)n,
                           .smoothing = smoothing,
                           .dscores = gradients};
    struct model_score score = {0};

    softmax_loss(&job, &score);
    return score;
}

START_TEST(the_loss_of_equal_scores_is_the_logarithm_of_the_classes)
{
    float scores[20] = {0}, gradients[20];
    unsigned char labels[2] = {3, 0};
    struct model_score score = judge(scores, labels, 2, 0, gradients);

    ck_assert_double_eq_tol(score.loss, 2 * log(10), 1e-12);
    ck_assert_int_eq(score.n_right, 1); /* the first of equals is taken */
    ck_assert_float_eq_tol(gradients[3], 0.5f * (0.1f - 1), 1e-7);
    ck_assert_float_eq_tol(gradients[4], 0.5f * 0.1f, 1e-7);
}
END_TEST

/* _i: without and with smoothing */
START_TEST(the_loss_survives_huge_scores_and_follows_its_gradients)
{
    float scores[10], gradients[10];
    double smoothing = 0.2 * _i;
    unsigned char label = 7;
    struct model_score mid;

    for (int c = 0; c < 10; c++)
        scores[c] = 1000 + 0.3f * (float)c;
    mid = judge(scores, &label, 1, smoothing, gradients);
    ck_assert_int_eq(mid.n_right, 0);
    for (int c = 0; c < 10; c++) {
        float was = scores[c];
        double up;

        scores[c] = was + 0.0625f;
        up = judge(scores, &label, 1, smoothing, NULL).loss;
        scores[c] = was;
        ck_assert_double_eq_tol((up - mid.loss) / 0.0625, (double)gradients[c],
                                0.01);
    }
}
END_TEST

/* By the formula in the documentation of PyTorch's CrossEntropyLoss: the target of
 * class c is (1 - e) [c is the label] + e / 10, and the loss - sum target log p. */
START_TEST(a_smoothed_label_is_a_little_of_every_class)
{
    float scores[20], gradients[20];
    unsigned char labels[2] = {3, 9};
    struct model_score score;
    double want = 0;

    for (int i = 0; i < 20; i++)
        scores[i] = (float)sin(i * i);
    score = judge(scores, labels, 2, 0.1, gradients);
    for (int row = 0; row < 2; row++) {
        double sum = 0;

        for (int c = 0; c < 10; c++)
            sum += exp((double)scores[10 * row + c]);
        for (int c = 0; c < 10; c++) {
            double target = (c == labels[row] ? 0.9 : 0) + 0.01;
            double p = exp((double)scores[10 * row + c]) / sum;

            want -= target * log(p);
            ck_assert_double_eq_tol((double)gradients[10 * row + c],
                                    (p - target) / 2, 1e-7);
        }
    }
    ck_assert_double_eq_tol(score.loss, want, 1e-9);
    ck_assert_double_ne(judge(scores, labels, 2, 0, NULL).loss, want);
}
END_TEST

/* _i: without and with smoothing */
START_TEST(a_score_that_is_no_number_is_a_loss_that_is_none)
{
    float scores[10] = {0, NAN}, gradients[10];
    unsigned char label = 2;
    struct model_score score = judge(scores, &label, 1, 0.2 * _i, gradients);

    ck_assert(isnan(score.loss));
    ck_assert(isnan(gradients[0]));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_loss");
    TCase *loss = suite_case(suite, "loss", 20);

    tcase_add_test(loss,
                   the_loss_of_equal_scores_is_the_logarithm_of_the_classes);
    tcase_add_loop_test(
        loss, the_loss_survives_huge_scores_and_follows_its_gradients, 0, 2);
    tcase_add_test(loss, a_smoothed_label_is_a_little_of_every_class);
    tcase_add_loop_test(loss, a_score_that_is_no_number_is_a_loss_that_is_none,
                        0, 2);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
