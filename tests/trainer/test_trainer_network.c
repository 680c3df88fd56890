/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_network.c - the whole network: its gradients by finite differences,
 * in chunks, by another view, by seed. */
#include "tests/trainer/trainer_layer.h"
#include "tests/support/suite.h"
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/model.h"
#include "trainer/onednn.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The cnn in small: every kind of layer, the same order. */
static const struct layer_spec small_specs[] = {
    {.kind = LAYER_CONV, .kernel = 3, .units = 16, .relu = 1},
    {.kind = LAYER_CONV, .kernel = 3, .units = 16},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.25f},
    {.kind = LAYER_DENSE, .units = 24, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = 10},
};

static const struct model_desc small = {
    .name = "small", .specs = small_specs, .n_specs = 7};

/* A residual network in small: a block beside what goes in, and one beside a
 * shortcut. */
static const struct layer_spec residual_specs[] = {
    {.kind = LAYER_CONV, .units = 8, .kernel = 3, .pad = 1, .no_bias = 1},
    {.kind = LAYER_NORM, .relu = 1},
    {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1},
    {.kind = LAYER_CONV, .units = 8, .kernel = 3, .pad = 1, .no_bias = 1},
    {.kind = LAYER_NORM, .relu = 1},
    {.kind = LAYER_CONV, .units = 8, .kernel = 3, .pad = 1, .no_bias = 1},
    {.kind = LAYER_NORM, .plus = 3, .relu = 1},
    {.kind = LAYER_CONV, .units = 16, .kernel = 1, .stride = 2, .no_bias = 1},
    {.kind = LAYER_NORM},
    {.kind = LAYER_CONV,
     .units = 16,
     .kernel = 3,
     .stride = 2,
     .pad = 1,
     .no_bias = 1,
     .from = 2},
    {.kind = LAYER_NORM, .relu = 1},
    {.kind = LAYER_CONV, .units = 16, .kernel = 3, .pad = 1, .no_bias = 1},
    {.kind = LAYER_NORM, .plus = 3, .relu = 1},
    {.kind = LAYER_MEAN_POOL},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

static const struct model_desc residual = {
    .name = "residual", .specs = residual_specs, .n_specs = 15};

/* Whether passes are for training; a loop test sets it. */
static int is_training = 1;

/* Whether the next pass is a step's first. */
static int is_first;

static struct model *small_model(int chunk)
{
    struct model_config config = {.desc = &small,
                                  .channels = 1,
                                  .height = 12,
                                  .width = 10,
                                  .chunk = chunk};
    struct model *m;

    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    model_init_params(m, INIT_TORCH, 5);
    return m;
}

static const unsigned char labels[] = {1, 9, 4, 0, 4, 7, 2, 8};

/* Run images first .. first + n through a model of n images or more. */
static double pass_images(struct model *m, int first, int n, int backward)
{
    struct pass pass = {.is_training = is_training,
                        .key = 4,
                        .first = (size_t)first,
                        .is_first = is_first};
    struct model_score score = {0};

    for (int i = 0; i < n; i++)
        layer_fill(model_input(m) + i * 120, 120, 1000 + (uint64_t)(first + i));
    ck_assert_int_eq(model_forward(m, &pass), 0);
    model_loss(m, labels + first, n, 1.0f / 8, &score);
    if (backward)
        ck_assert_int_eq(model_backward(m, &pass, NULL, NULL), 0);
    return score.loss / 8;
}

static struct model *residual_model(void)
{
    struct model_config config = {.desc = &residual,
                                  .channels = 1,
                                  .height = 12,
                                  .width = 10,
                                  .chunk = 8};
    struct model *m;

    ck_assert(model_needs_batch(&residual) && !model_needs_batch(&small));
    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    model_init_params(m, INIT_TORCH, 5);
    return m;
}

/* _i: not in training (no dropout, running statistics), or in training; the cnn
 * in small, or the residual network. */
START_TEST(row30_the_network_follows_its_gradients)
{
    struct model *m = _i / 2 ? residual_model() : small_model(8);
    size_t n = model_n_params(m), step = n / 150 + 1;
    float *params = model_params(m), *grads = model_gradients(m);
    int compared = 0, tried = 0;
    double mid;

    is_training = _i % 2;
    mid = pass_images(m, 0, 8, 1);
    for (size_t i = 0; i < n; i += step, tried++) {
        const float h = 0.004f;
        float was = params[i];
        double left, right;

        params[i] = was + h;
        model_changed(m);
        right = (pass_images(m, 0, 8, 0) - mid) / (double)(params[i] - was);
        params[i] = was - h;
        model_changed(m);
        left = (pass_images(m, 0, 8, 0) - mid) / (double)(params[i] - was);
        params[i] = was;
        if (fabs(left - right) > 1e-3)
            continue;
        compared++;
        /* a batch's statistics bend what lies between the two sides */
        ck_assert_double_eq_tol((left + right) / 2, (double)grads[i],
                                _i / 2 ? 3e-3 : 1e-3);
    }
    ck_assert_int_gt(compared * 10, tried * (_i / 2 ? 6 : 8));
    model_destroy(m);
}
END_TEST

/* _i: in training or not.  What gradients held before is nothing to a first pass, and
 * the next adds to what that has made: to the bit what zeros give. */
START_TEST(a_first_pass_finds_its_gradients_cleared)
{
    struct model *m = small_model(8);
    size_t len = model_n_params(m) * sizeof(float);
    float *want = malloc(len);

    is_training = _i;
    ck_assert_ptr_nonnull(want);
    pass_images(m, 0, 8, 1);
    pass_images(m, 0, 8, 1);
    memcpy(want, model_gradients(m), len);
    memset(model_gradients(m), 0xff, len); /* no numbers */
    model_clear_gradients(m);
    is_first = 1;
    pass_images(m, 0, 8, 1);
    is_first = 0;
    pass_images(m, 0, 8, 1);
    ck_assert_mem_eq(want, model_gradients(m), len);
    free(want);
    model_destroy(m);
}
END_TEST

static void assert_close(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-6);
}

/* _i: chunks of 1, 3 (2 are left for the last) and 5, in training or not. */
START_TEST(chunks_add_up_to_the_batch)
{
    static const int chunks[] = {1, 3, 5};
    int chunk = chunks[_i / 2];
    struct model *whole = small_model(8), *part = small_model(chunk);
    double loss, sum = 0;

    is_training = _i % 2;
    loss = pass_images(whole, 0, 8, 1);
    for (int at = 0; at < 8; at += chunk)
        sum += pass_images(part, at, 8 - at < chunk ? 8 - at : chunk, 1);
    ck_assert_double_eq_tol(loss, sum, 1e-6);
    assert_close(model_gradients(whole), model_gradients(part),
                 model_n_params(whole));
    model_destroy(whole);
    model_destroy(part);
}
END_TEST

START_TEST(a_view_scores_like_its_model_and_follows_its_parameters)
{
    struct model *m = small_model(4), *view;
    struct pass pass = {0};
    struct model_score score, same;

    ck_assert_int_eq(model_create_view(&view, m, 2), 0);
    for (int i = 0; i < 2; i++) {
        model_init_params(m, INIT_GLOROT, (uint64_t)i);
        model_changed(view);
        layer_fill(model_input(m), 480, 8);
        layer_fill(model_input(view), 240, 8);
        ck_assert_int_eq(model_forward(m, &pass), 0);
        ck_assert_int_eq(model_forward(view, &pass), 0);
        score = same = (struct model_score){0};
        model_loss(m, labels, 2, 1, &score);
        model_loss(view, labels, 2, 1, &same);
        ck_assert_double_eq_tol(score.loss, same.loss, 1e-6);
    }
    model_destroy(view);
    model_destroy(m);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_bits)
{
    struct model *a = small_model(4), *b = small_model(4);
    size_t len = model_n_params(a) * sizeof(float);

    ck_assert_mem_eq(model_params(a), model_params(b), len);
    pass_images(a, 0, 4, 1);
    pass_images(b, 0, 4, 1);
    ck_assert_mem_eq(model_gradients(a), model_gradients(b), len);
    model_init_params(b, INIT_TORCH, 6);
    ck_assert_mem_ne(model_params(a), model_params(b), len);
    model_destroy(a);
    model_destroy(b);
}
END_TEST

START_TEST(the_cnn_has_the_classic_number_of_parameters)
{
    struct model_config config = {.desc = &model_cnn,
                                  .channels = 1,
                                  .height = 28,
                                  .width = 28,
                                  .chunk = 2};
    struct model *m;

    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    ck_assert_uint_eq(model_n_params(m), 1199882);
    ck_assert_int_eq(model_n_classes(m), 10);
    ck_assert_ptr_null(strstr(onednn_conv_kernels(model_layer(m, 1)->state),
                              "ref"));
    model_destroy(m);
}
END_TEST

START_TEST(the_models_have_their_tutorials_numbers_of_parameters)
{
    static const struct {
        const char *name;
        size_t n;
    } want[] = {{"cnn", 1199882},
                {"net", 21840},
                {"alexnet", 23272266},
                {"resnet18", 11181642},
                {"resnet18-cifar", 11173962},
                {"resnet50", 23528522}};

    for (int i = 0; model_at(i); i++) {
        const struct model_desc *desc = model_at(i);
        struct model_config config = {.desc = desc,
                                      .channels = desc->in.channels,
                                      .height = desc->in.height,
                                      .width = desc->in.width,
                                      .chunk = 1};
        struct model *m;

        ck_assert_str_eq(desc->name, want[i].name);
        ck_assert_msg(!model_create(&m, &config), "%s", train_error());
        ck_assert_uint_eq(model_n_params(m), want[i].n);
        model_destroy(m);
    }
}
END_TEST

START_TEST(a_network_that_does_not_fit_is_refused_in_words)
{
    struct model_config config = {
        .desc = &small, .channels = 1, .height = 5, .width = 5, .chunk = 1};
    struct model *m;

    ck_assert_int_eq(model_create(&m, &config), -1); /* 1 x 1 cannot pool */
    ck_assert_ptr_nonnull(strstr(train_error(), "windows"));
}
END_TEST

static void set_up(void)
{
    ck_assert_msg(!onednn_init(1), "%s", train_error());
}

static void tear_down(void) { onednn_fini(); }

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_network");
    TCase *net = suite_case(suite, "network", 300);

    tcase_add_checked_fixture(net, set_up, tear_down);
    tcase_add_loop_test(net, row30_the_network_follows_its_gradients, 0, 4);
    tcase_add_loop_test(net, a_first_pass_finds_its_gradients_cleared, 0, 2);
    tcase_add_loop_test(net, chunks_add_up_to_the_batch, 0, 6);
    tcase_add_test(net,
                   a_view_scores_like_its_model_and_follows_its_parameters);
    tcase_add_test(net, the_same_seed_gives_the_same_bits);
    tcase_add_test(net, the_cnn_has_the_classic_number_of_parameters);
    tcase_add_test(net, the_models_have_their_tutorials_numbers_of_parameters);
    tcase_add_test(net, a_network_that_does_not_fit_is_refused_in_words);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
