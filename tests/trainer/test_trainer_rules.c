/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_rules.c - optimizers, learning rates and the smoothed loss, step by
 * step beside PyTorch's, as tests/trainer/record_rules.py recorded them of a network
 * of two dense layers.
 *
 * PyTorch's numbers are in double precision, and the network is so small and smooth
 * that what differs is rounding, or an error.
 */
#include "tests/trainer/trainer_digest.h"
#include "tests/support/suite.h"
#include "tests/trainer/trainer_recorded.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/optim.h"
#include "trainer/rate.h"
#include "trainer/rng.h"

#include <jansson.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_RUNS 8 /* these as in record_rules.py */
#define N_IN 12
#define BATCH 6
#define EPOCH 4
#define STEPS 20
#define SEED 42
#define MAX_WORDS 32

static const struct layer_spec specs[] = {
    {.kind = LAYER_DENSE, .units = 8, .relu = 1},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

static const struct model_desc two_layers = {
    .name = "two layers", .specs = specs, .n_specs = 2};

static json_t *recorded; /* the whole file */

/* The flags of a run, and what follows from them. */
struct job {
    const json_t *run;
    struct args args;
    struct learning_rate rate;
    struct optim optim;
    struct model *model;
};

static const json_t *list_of(const json_t *run, const char *key, size_t n)
{
    const json_t *list = json_object_get(run, key);

    ck_assert_msg(json_array_size(list) == n, "%s: not %zu of them", key, n);
    return list;
}

static double number_at(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static void read_flags(struct job *job)
{
    static char epochs[] = "--epochs=5", name[] = "coll_train";
    const json_t *flags = json_object_get(job->run, "flags");
    char *argv[MAX_WORDS] = {name, epochs};
    int argc = 2;

    ck_assert_uint_lt(json_array_size(flags), MAX_WORDS - 2);
    for (size_t i = 0; i < json_array_size(flags); i++)
        argv[argc++] =
            (char *)(uintptr_t)json_string_value(json_array_get(flags, i));
    ck_assert_msg(!args_parse(&job->args, argc, argv), "%s", train_error());
}

static void begin(struct job *job, int i)
{
    struct model_config config = {.desc = &two_layers,
                                  .channels = 1,
                                  .height = 3,
                                  .width = 4,
                                  .chunk = BATCH};

    *job = (struct job){
        .run = json_array_get(json_object_get(recorded, "runs"), (size_t)i)};
    read_flags(job);
    config.smoothing = job->args.label_smoothing;
    ck_assert_int_eq(device_cpu.init(&(struct device_config){.threads = 1}), 0);
    ck_assert_msg(!model_create(&job->model, &config), "%s", train_error());
    model_init_params(job->model, INIT_TORCH, SEED);
    rate_init(&job->rate, &job->args,
              (int)json_integer_value(json_object_get(job->run, "ranks")),
              EPOCH);
    optim_set(&job->optim, &job->args);
    ck_assert_int_eq(
        optim_init(&job->optim, &device_cpu, model_n_params(job->model)), 0);
}

static void end(struct job *job)
{
    optim_fini(&job->optim);
    model_destroy(job->model);
    args_fini(&job->args);
    device_cpu.fini();
}

/* Return the loss of a step's images before it. */
static double make_step(struct job *job, size_t step)
{
    size_t n = model_n_params(job->model), first = step * BATCH;
    struct pass pass = {.is_training = 1};
    unsigned char labels[BATCH];
    struct model_score score = {0};
    struct optim_part all = {.n = n,
                             .params = model_params(job->model),
                             .gradients = model_gradients(job->model)};

    for (size_t i = 0; i < BATCH; i++)
        labels[i] = (unsigned char)((7 * (first + i) + 3) % 10);
    for (size_t k = 0; k < (size_t)BATCH * N_IN; k++)
        model_input(job->model)[k] =
            rng_unit(rng_key(TEST_KEY, 2), first * N_IN + k);
    device_cpu.zero(model_gradients(job->model), n * sizeof(float));
    ck_assert_int_eq(model_forward(job->model, &pass), 0);
    model_loss(job->model, labels, BATCH, 1.0f / BATCH, &score);
    ck_assert_int_eq(model_backward(job->model, &pass, NULL, NULL), 0);
    job->optim.lr = rate_at(&job->rate, ++job->optim.step);
    device_cpu.step(&job->optim, &all);
    model_changed(job->model);
    return score.loss / BATCH;
}

/* _i: the run */
START_TEST(twenty_steps_go_the_way_of_torch)
{
    const json_t *losses, *rates, *params;
    struct job job;
    size_t n;

    begin(&job, _i);
    n = model_n_params(job.model);
    losses = list_of(job.run, "losses", STEPS);
    rates = list_of(job.run, "rates", STEPS);
    params = list_of(job.run, "params", n);
    for (size_t step = 0; step < STEPS; step++) {
        double loss = make_step(&job, step);

        ck_assert_double_eq_tol(loss, number_at(losses, step), 1e-6);
        ck_assert_double_eq_tol(job.optim.lr, number_at(rates, step), 1e-9);
    }
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol((double)model_params(job.model)[i],
                                number_at(params, i), 1e-5);
    end(&job);
}
END_TEST

static void set_up(void)
{
    recorded = recorded_load("rules.json");
    ck_assert_uint_eq(json_array_size(json_object_get(recorded, "runs")),
                      N_RUNS);
}

static void tear_down(void) { json_decref(recorded); }

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_rules");
    TCase *rules = suite_case(suite, "rules", 60);

    tcase_add_unchecked_fixture(rules, set_up, tear_down);
    tcase_add_loop_test(rules, twenty_steps_go_the_way_of_torch, 0, N_RUNS);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
