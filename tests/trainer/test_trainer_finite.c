/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_finite.c - numbers that are NaN or infinite: they are found and
 * named, and when they come up on one rank alone, all ranks stop alike.
 *
 * What the ranks say goes back through one page that they share.
 */
#include "tests/trainer/trainer_job.h"
#include "tests/support/suite.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/finite.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/onednn.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANKS 3
#define STEPS 4 /* of an epoch: 96 images, 3 x 8 a step */
#define DEADLINE 120.0

/* ---- places ---- */

START_TEST(the_first_value_that_is_not_finite_is_found)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float values[20];

    for (int i = 0; i < 20; i++)
        values[i] = i % 2 ? 3.4e38f : -1e-40f;
    ck_assert_uint_eq(finite_len(values, 20), 20);
    ck_assert_uint_eq(finite_len(values, 0), 0);
    for (size_t i = 0; i < 20; i++) {
        float was = values[i];

        values[i] = bad[i % 3];
        values[19] = NAN;
        ck_assert_uint_eq(finite_len(values, 20), i);
        values[i] = was;
    }
}
END_TEST

/* The parameters of a layer begin where those before it end. */
static size_t params_before(const struct model *m, int layer)
{
    size_t n = 0;

    for (int i = 0; i < layer; i++)
        n += model_layer_params(m, i);
    return n;
}

static int place_in_pass(struct model *m, int n)
{
    int place = -1;

    ck_assert_int_eq(finite_in_pass(m, n, &place), 0);
    return place;
}

static void assert_named(const struct model *m, int place, const char *name)
{
    char found[FINITE_NAME];

    finite_name(found, m, place);
    ck_assert_str_eq(found, name);
}

/* Make a value bad, run, and expect to be told of its place. */
static void plant(struct model *m, float *value, float bad, const char *name)
{
    struct pass pass = {0};
    float was = *value;

    *value = bad;
    model_changed(m);
    ck_assert_int_eq(model_forward(m, &pass), 0);
    assert_named(m, place_in_pass(m, 2), name);
    *value = was;
    model_changed(m);
}

START_TEST(each_place_of_a_pass_is_named)
{
    struct model_config config = {
        .desc = &model_cnn, .channels = 1, .height = 28, .width = 28};
    struct pass pass = {0};
    struct model *m;
    float *p;

    ck_assert_msg(!onednn_init(1), "%s", train_error());
    config.chunk = 3;
    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    model_init_params(m, INIT_TORCH, 1);
    p = model_params(m);
    ck_assert_int_eq(model_forward(m, &pass), 0);
    ck_assert_int_eq(place_in_pass(m, 3), 0);
    plant(m, &model_input(m)[784], NAN, "the images");
    plant(m, &p[7], NAN, "layer 0 (conv_image), its parameters");
    plant(m, &p[319], -INFINITY, "layer 0 (conv_image), its parameters");
    plant(m, &p[params_before(m, 4) - 1], NAN,
          "layer 1 (conv), its parameters");
    plant(m, &p[params_before(m, 4)], NAN, "layer 4 (dense), its parameters");
    plant(m, &p[model_n_params(m) - 1], INFINITY,
          "layer 6 (dense), its parameters");
    for (size_t i = 320; i < 320 + 288; i++)
        p[i] = 3e38f; /* of layer 1: finite, but no sum of them is */
    plant(m, &p[0], p[0], "layer 1 (conv), its output");
    model_destroy(m);
    onednn_fini();
}
END_TEST

/* Image 2 of a chunk of 3 is no part of a pass of 2. */
START_TEST(what_lies_beyond_the_last_image_does_not_count)
{
    struct model_config config = {
        .desc = &model_cnn, .channels = 1, .height = 28, .width = 28};
    struct pass pass = {0};
    struct model *m;

    ck_assert_msg(!onednn_init(1), "%s", train_error());
    config.chunk = 3;
    ck_assert_msg(!model_create(&m, &config), "%s", train_error());
    model_init_params(m, INIT_TORCH, 1);
    model_input(m)[2 * 784] = NAN;
    ck_assert_int_eq(model_forward(m, &pass), 0);
    ck_assert_int_eq(place_in_pass(m, 2), 0);
    assert_named(m, place_in_pass(m, 3), "the images");
    model_destroy(m);
    onednn_fini();
}
END_TEST

/* ---- ranks ---- */

/* What the ranks share; `who` is the one that goes astray, `scene` what a rank
 * does with its trainer, 0 when all is as it should be. */
struct job {
    struct args args;
    int who;
    int (*scene)(struct world_rank *me, struct trainer *t);
    char said[RANKS][512];
};

static struct job *job_new(int who,
                           int (*scene)(struct world_rank *, struct trainer *))
{
    struct job *job = job_page(sizeof(*job));

    job_args(&job->args);
    job->who = who;
    job->scene = scene;
    return job;
}

static int is_astray(const struct world_rank *me)
{
    return me->rank == ((const struct job *)me->arg)->who;
}

/* A rank: its scene, and what it then has to say. */
static int play(struct world_rank *me)
{
    struct job *job = me->arg;
    struct trainer t;
    struct ddp d;

    if (job_start(me, &job->args, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    if (job->scene(me, &t))
        return 1;
    snprintf(job->said[me->rank], sizeof(job->said[0]), "%s", train_error());
    return job_end(me, &t, &d);
}

/* Let them play; all say the same, and these words. */
static void assert_all_say(struct job *job, const char *words)
{
    ck_assert_int_eq(world_fork(RANKS, play, job, DEADLINE), 0);
    for (int r = 0; r < RANKS; r++) {
        ck_assert_str_eq(job->said[r], job->said[0]);
        ck_assert_msg(strstr(job->said[r], words), "'%s' has no '%s'",
                      job->said[r], words);
    }
    munmap(job, sizeof(*job));
}

struct rank_run {
    struct trainer *t;
    int is_astray;
    float *params; /* before the step that stops */
};

/* After step 2 one rank's parameter becomes NaN behind everybody's back. */
static void spoil_after_step_2(void *arg, const struct progress_stats *p)
{
    struct rank_run *run = arg;
    struct model *m = run->t->model;

    if (p->step != 2 || ddp_await_all(run->t->ddp))
        return;
    if (run->is_astray) {
        model_params(m)[400] = NAN;
        model_changed(m);
    }
    memcpy(run->params, model_params(m), model_n_params(m) * sizeof(float));
}

static int train_beside_a_nan(struct world_rank *me, struct trainer *t)
{
    struct rank_run run = {t, is_astray(me), NULL};
    struct epoch_stats stats;

    run.params = calloc(model_n_params(t->model), sizeof(float));
    WORLD_CHECK(me, run.params);
    WORLD_CHECK(me, trainer_epoch(t, &stats, spoil_after_step_2, &run) == -1);
    WORLD_CHECK(me, t->optim.step == 2 && t->epoch == 0);
    WORLD_CHECK(me, !memcmp(run.params, model_params(t->model),
                            model_n_params(t->model) * sizeof(float)));
    free(run.params);
    return 0;
}

/* _i: the rank whose loss is NaN; with RANKS more, it has its part of the
 * averages alone. */
START_TEST(one_rank_whose_loss_is_not_finite_stops_all)
{
    struct job *job = job_new(_i % RANKS, train_beside_a_nan);
    char words[128];

    job->args.zero = _i / RANKS;

    snprintf(words, sizeof(words),
             "the loss of step 3 in epoch 1 is not "
             "finite on rank %d: the first is layer 1 (conv), its parameters; "
             "lower --lr",
             _i % RANKS);
    assert_all_say(job, words);
}
END_TEST

/* A batch in two chunks, 33 and 32 images, of which the first is bad. */
static int train_on_a_bad_first_chunk(struct world_rank *me, struct trainer *t)
{
    struct epoch_stats stats;

    sampler_start_epoch(&t->sampler, 0);
    if (is_astray(me)) { /* one pixel value, in one image alone */
        const uint32_t *index = sampler_step(&t->sampler, 0);
        size_t len = images_len(&t->data.train);

        for (size_t i = 0; i < t->data.train.n * len; i++)
            if (t->data.train.pixels[i] == 255)
                t->data.train.pixels[i] = 254;
        t->data.train.pixels[index[1] * len] = 255;
        t->scale.value[255] = INFINITY;
    }
    WORLD_CHECK(me, trainer_epoch(t, &stats, job_no_progress, NULL) == -1);
    WORLD_CHECK(me, t->optim.step == 0);
    return 0;
}

START_TEST(a_chunk_that_is_not_finite_stops_all)
{
    struct job *job = job_new(1, train_on_a_bad_first_chunk);

    job->args.batch_size = 65;
    job->args.limit_train = RANKS * 65;
    assert_all_say(job,
                   "the loss of step 1 in epoch 1 is not finite on rank 1: "
                   "the first is the images");
}
END_TEST

/* One rank alone cannot read its test images. */
static int test_beside_a_nan(struct world_rank *me, struct trainer *t)
{
    struct epoch_stats stats;

    WORLD_CHECK(me, !trainer_epoch(t, &stats, job_no_progress, NULL));
    if (is_astray(me))
        for (int v = 0; v < 256; v++)
            t->scale.value[v] = NAN;
    WORLD_CHECK(me, trainer_test(t, &stats) == -1);
    return 0;
}

/* _i: the rank whose test loss is NaN. */
START_TEST(a_test_loss_that_is_not_finite_stops_all)
{
    struct job *job = job_new(_i, test_beside_a_nan);
    char words[128];

    job->args.test_batch_size = 16; /* 16 and the last */
    snprintf(words, sizeof(words),
             "the test loss after epoch 1 is not finite "
             "on rank %d: the first is the images",
             _i);
    assert_all_say(job, words);
}
END_TEST

/* The last step makes parameters that no loss has seen yet. */
static void spoil_the_last_step(void *arg, const struct progress_stats *p)
{
    struct trainer *t = arg;

    if (p->step == STEPS - 1)
        t->rate.base = 1e39; /* a float's infinity */
}

static int train_with_a_bad_last_step(struct world_rank *me, struct trainer *t)
{
    struct epoch_stats stats;

    WORLD_CHECK(me, !trainer_epoch(t, &stats, spoil_the_last_step, t));
    WORLD_CHECK(me, isfinite(stats.loss));
    WORLD_CHECK(me, trainer_test(t, &stats) == -1);
    return 0;
}

/* _i: sgd or adam */
START_TEST(a_last_step_that_spoils_the_parameters_is_found_out)
{
    struct job *job = job_new(0, train_with_a_bad_last_step);

    job->args.opt = _i;
    assert_all_say(job,
                   "the test loss after epoch 1 is not finite on rank 0: the "
                   "first is layer 0 (conv_image), its parameters");
}
END_TEST

/* A relu makes 0 of minus infinity, so that no loss tells. */
static int hide_an_infinity(struct world_rank *me, struct trainer *t)
{
    const struct job *job = me->arg;
    struct epoch_stats stats;

    WORLD_CHECK(me, !trainer_epoch(t, &stats, job_no_progress, NULL));
    if (job->args.zero ? me->rank == 1 : job->who)
        t->optim.state[t->optim.n_state - 1] = INFINITY;
    else if (!job->who)
        model_params(t->model)[params_before(t->model, 4) +
                               model_layer(t->model, 4)->n_weights] = -INFINITY;
    model_changed(t->model);
    model_changed(t->eval);
    WORLD_CHECK(me, trainer_test(t, &stats) == -1);
    WORLD_CHECK(me, isfinite(stats.test_loss));
    return 0;
}

/* _i: in the parameters or in the optimizer's state; 2: in that of one rank's
 * part. */
START_TEST(what_the_loss_does_not_tell_is_found_after_the_epoch)
{
    struct job *job = job_new(_i, hide_an_infinity);

    job->args.checkpoint = "/tmp";
    job->args.zero = _i == 2;
    assert_all_say(job, _i == 0 ? "layer 4 (dense), its parameters"
                        : _i == 2
                            ? "layer 1 (conv), its optimizer state"
                            : "after step 4, the last of epoch 1, not all is "
                              "finite: the first is layer 6 (dense), its "
                              "optimizer state; lower --lr (the rate is "
                              "0.001) and go on from the last checkpoint by "
                              "--resume auto");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_finite");
    TCase *places = suite_case(suite, "places", 300);
    TCase *ranks = suite_case(suite, "ranks", 4 * DEADLINE);

    tcase_add_test(places, the_first_value_that_is_not_finite_is_found);
    tcase_add_test(places, each_place_of_a_pass_is_named);
    tcase_add_test(places, what_lies_beyond_the_last_image_does_not_count);

    tcase_add_loop_test(ranks, one_rank_whose_loss_is_not_finite_stops_all, 0,
                        2 * RANKS);
    tcase_add_test(ranks, a_chunk_that_is_not_finite_stops_all);
    tcase_add_loop_test(ranks, a_test_loss_that_is_not_finite_stops_all, 0,
                        RANKS);
    tcase_add_loop_test(
        ranks, a_last_step_that_spoils_the_parameters_is_found_out, 0, 2);
    tcase_add_loop_test(
        ranks, what_the_loss_does_not_tell_is_found_after_the_epoch, 0, 3);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
