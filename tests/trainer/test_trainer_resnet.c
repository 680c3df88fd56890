/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_resnet.c - ResNet-18 against PyTorch's, as
 * tests/trainer/record_resnet.py recorded it: loss, the gradient of every
 * layer, running statistics, and the same with these in place of the batch's. */
#include "tests/trainer/trainer_digest.h"
#include "tests/support/suite.h"
#include "tests/trainer/trainer_recorded.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/rng.h"

#include <jansson.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 8 /* images; this and what is drawn as in record_resnet.py */

/* What single precision may do; PyTorch's numbers are of double. */
#define SLOPES 1e-4
#define LOSS 1e-5

static json_t *recorded;

static float unit(uint64_t which, uint64_t i)
{
    return rng_unit(rng_key(TEST_KEY, which), i);
}

/* Weights and biases of layer i lie in the flat array one after the other. */
static void draw_norms(struct model *m)
{
    float *p = model_params(m);

    for (int i = 0; i < model_n_layers(m); i++) {
        const struct layer *l = model_layer(m, i);

        for (size_t c = 0; l->spec.kind == LAYER_NORM && c < l->n_weights;
             c++) {
            p[c] = 0.5f + unit(100 + (uint64_t)i, c);
            p[l->n_weights + c] = unit(200 + (uint64_t)i, c) - 0.5f;
        }
        p += model_layer_params(m, i);
    }
}

static struct model *make_model(void)
{
    struct model_config config = {.desc = model_find("resnet18"),
                                  .channels = 3,
                                  .height = 32,
                                  .width = 32,
                                  .chunk = N};
    struct model *m;

    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    ck_assert_uint_eq(model_n_params(m), 11181642);
    model_init_params(m, INIT_TORCH, 42);
    draw_norms(m);
    model_changed(m);
    for (size_t i = 0; i < (size_t)N * 32 * 32 * 3; i++)
        model_input(m)[i] = unit(3, i);
    return m;
}

/* Return the error of a vector of floats against what was recorded of it. */
static double error_of(const float *values, size_t n, const json_t *want)
{
    double *wide = calloc(n, sizeof(*wide)), error;
    struct digest is, there;

    ck_assert_ptr_nonnull(wide);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    digest_make(&is, wide, n);
    digest_read(&there, want);
    error = digest_error(&is, &there);
    free(wide);
    return error;
}

static void compare_gradients(const struct layer *l, const json_t *gradients)
{
    const struct {
        const char *name;
        const float *values;
        size_t n;
    } parts[] = {{"weights", l->dweights, l->n_weights},
                 {"biases", l->dbiases, l->n_biases}};

    for (int k = 0; k < 2; k++) {
        const json_t *want;
        char name[64];
        double error;

        if (parts[k].n == 0)
            continue;
        snprintf(name, sizeof(name), "%d %s %s", l->index, l->ops->name,
                 parts[k].name);
        want = json_object_get(gradients, name);
        ck_assert_msg(want != NULL, "%s was not recorded", name);
        error = error_of(parts[k].values, parts[k].n, want);
        ck_assert_msg(error < SLOPES, "%s: wrong by %.1e", name, error);
    }
}

static void compare_pass(struct model *m, const char *which, int is_training)
{
    const json_t *want = json_object_get(recorded, which);
    double loss = json_number_value(json_object_get(want, "loss"));
    struct pass pass = {.is_training = is_training};
    unsigned char labels[N];
    struct model_score score = {0};

    for (int i = 0; i < N; i++)
        labels[i] = (unsigned char)((7 * i + 3) % 10);
    device_cpu.zero(model_gradients(m), model_n_params(m) * sizeof(float));
    ck_assert_int_eq(model_forward(m, &pass), 0);
    model_loss(m, labels, N, 1.0f / N, &score);
    ck_assert_double_eq_tol(score.loss / N, loss, LOSS * loss);
    ck_assert_int_eq(model_backward(m, &pass, NULL, NULL), 0);
    for (int i = 0; i < model_n_layers(m); i++)
        compare_gradients(model_layer(m, i), json_object_get(want, "gradients"));
}

static void compare_running(const struct model *m)
{
    const json_t *all = json_object_get(recorded, "running");
    size_t n_found = 0;

    for (int i = 0; i < model_n_layers(m); i++) {
        const struct layer *l = model_layer(m, i);
        const json_t *want;
        size_t n = l->n_running / 2;
        char name[16];

        if (n == 0)
            continue;
        snprintf(name, sizeof(name), "%d", i);
        want = json_object_get(all, name);
        ck_assert_double_lt(error_of(l->running, n, json_array_get(want, 0)),
                            1e-5);
        ck_assert_double_lt(
            error_of(l->running + n, n, json_array_get(want, 1)), 1e-5);
        n_found++;
    }
    ck_assert_uint_eq(n_found, json_object_size(all));
}

START_TEST(row30_the_resnet_has_the_gradients_of_torch)
{
    struct model *m = make_model();

    compare_pass(m, "training", 1);
    compare_running(m);
    compare_pass(m, "testing", 0);
    model_destroy(m);
}
END_TEST

static void set_up(void)
{
    recorded = recorded_load("resnet.json");
    ck_assert_msg(!device_cpu.init(&(struct device_config){.threads = 1}), "%s",
                  train_error());
}

static void tear_down(void)
{
    device_cpu.fini();
    json_decref(recorded);
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_resnet");
    TCase *resnet = suite_case(suite, "resnet", 300);

    tcase_add_checked_fixture(resnet, set_up, tear_down);
    tcase_add_test(resnet, row30_the_resnet_has_the_gradients_of_torch);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
