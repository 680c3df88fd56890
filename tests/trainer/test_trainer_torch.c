/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_torch.c - whole runs of the trainer against PyTorch's, as
 * tests/trainer/record_torch.py recorded them: losses, gradients and how far the
 * parameters moved, after the first and the last step.
 *
 * The runs begin with files of images and flags, as the user's do, so that
 * start, shuffle, scale, network, dropout, loss, average over the ranks and
 * optimizer are all in it.  PyTorch's numbers are in double precision: what
 * differs is this program's rounding, or an error.
 */
#include "tests/trainer/trainer_digest.h"
#include "tests/trainer/trainer_job.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "tests/trainer/trainer_recorded.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/rng.h"

#include <jansson.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_TRAIN 195 /* these as in record_torch.py */
#define N_TEST 40
#define DEADLINE 120.0

/* What rounding may do, and an error not.  Slopes agree to 1e-6 of their norm,
 * unless a relu or a pool's winner tips (4e-4 seen); parameters of which a step
 * moves the last bits only, to 6e-4 of the way; losses to 1e-6. */
#define GRADIENTS 3e-3
#define MOVED 3e-3
#define LOSS 1e-4

static json_t *recorded; /* the whole file */
static char dir[] = "/tmp/coll-torch-XXXXXX";

/* ---- the images ---- */

static void put_word(FILE *f, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(word >> shift & 255), f);
}

static FILE *open_idx(const char *part, const char *what, uint32_t magic,
                      uint32_t n)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s-%s-ubyte", dir, part, what);
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    put_word(f, magic);
    put_word(f, n);
    return f;
}

static uint32_t label_of(uint32_t i) { return (7 * i + 3) % 10; }

/* A bright band of two rows tells the class; the rest is noise. */
static int pixel_of(uint32_t i, uint32_t at)
{
    uint64_t noise = rng_bits(rng_key(TEST_KEY, 0), (uint64_t)i * 784 + at);

    return at / 28 / 2 == 2 + label_of(i) ? 255 : (int)(noise >> 58);
}

static void write_part(const char *part, uint32_t first, uint32_t n)
{
    FILE *labels = open_idx(part, "labels-idx1", 0x801, n);
    FILE *pixels = open_idx(part, "images-idx3", 0x803, n);

    put_word(pixels, 28);
    put_word(pixels, 28);
    for (uint32_t i = first; i < first + n; i++) {
        fputc((int)label_of(i), labels);
        for (uint32_t at = 0; at < 784; at++)
            fputc(pixel_of(i, at), pixels);
    }
    ck_assert_int_eq(fclose(labels), 0);
    ck_assert_int_eq(fclose(pixels), 0);
}

/* ---- a run ---- */

/* One run and its ranks; what rank 0 finds wrong goes to stderr. */
struct job {
    struct args args;
    const json_t *run;
    double worst_gradients, worst_moved, worst_loss; /* errors so far */
    double right;                                 /* of the test's images */
};

struct watcher {
    struct job *job;
    struct trainer *t;
    int rank, size;
    double *start, *now; /* parameters; any flat vector */
    double loss;         /* of all steps so far */
};

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    ck_assert_msg(json_is_number(value), "no %s is recorded", key);
    return json_number_value(value);
}

/* Return the worst error among the parts of a flat vector. */
static double compare(const struct model *m, const json_t *want,
                      const double *flat)
{
    double worst = 0;

    for (int i = 0; i < model_n_layers(m); i++) {
        const struct layer *l = model_layer(m, i);
        const size_t n[] = {l->n_weights, l->n_biases};

        for (int k = 0; n[0] > 0 && k < 2; k++) {
            struct digest is, recorded_one;
            char name[64];

            snprintf(name, sizeof(name), "%d %s %s", i, l->ops->name,
                     k ? "biases" : "weights");
            digest_make(&is, flat, n[k]);
            digest_read(&recorded_one, json_object_get(want, name));
            worst = fmax(worst, digest_error(&is, &recorded_one));
            flat += n[k];
        }
    }
    return worst;
}

static void widen(double *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)in[i];
}

static void compare_point(struct watcher *w, const json_t *point)
{
    struct model *m = w->t->model;
    struct job *job = w->job;
    size_t n = model_n_params(m);

    widen(w->now, model_gradients(m), n);
    job->worst_gradients =
        fmax(job->worst_gradients,
             compare(m, json_object_get(point, "gradients"), w->now));
    widen(w->now, model_params(m), n);
    for (size_t i = 0; i < n; i++)
        w->now[i] -= w->start[i];
    job->worst_moved = fmax(
        job->worst_moved, compare(m, json_object_get(point, "moved"), w->now));
}

/* After each step, on rank 0: look at what the step left. */
static void after_step(void *arg, const struct progress_stats *p)
{
    struct watcher *w = arg;
    const json_t *points = json_object_get(w->job->run, "points");
    const json_t *losses = json_object_get(w->job->run, "losses");
    double loss = p->loss * (double)p->step - w->loss;

    if (w->rank)
        return;
    w->loss += loss;
    if (w->size == 1) /* else it is this rank's alone */
        w->job->worst_loss =
            fmax(w->job->worst_loss,
                 fabs(loss -
                      json_number_value(json_array_get(losses, p->step - 1))));
    for (size_t i = 0; i < json_array_size(points); i++)
        if ((size_t)number(json_array_get(points, i), "step") == p->step)
            compare_point(w, json_array_get(points, i));
}

/* The means over all ranks, and the test's figures. */
static void compare_stats(struct watcher *w, const struct epoch_stats *stats)
{
    const json_t *losses = json_object_get(w->job->run, "losses");
    size_t n = json_array_size(losses);
    double mean = 0;

    for (size_t i = 0; i < n; i++)
        mean += json_number_value(json_array_get(losses, i)) / (double)n;
    w->job->worst_loss = fmax(w->job->worst_loss, fabs(stats->loss - mean));
    w->job->worst_loss =
        fmax(w->job->worst_loss,
             fabs(stats->test_loss - number(w->job->run, "test_loss")));
    w->job->right = stats->test_accuracy * N_TEST;
}

static int train(struct world_rank *me)
{
    struct epoch_stats stats;
    struct trainer t;
    struct ddp d;
    struct watcher w = {me->arg, &t, me->rank, me->size, NULL, NULL, 0};
    size_t n;

    if (job_start(me, &w.job->args, &t, &d))
        return 1;
    n = model_n_params(t.model);
    w.start = calloc(n, sizeof(double));
    w.now = calloc(n, sizeof(double));
    WORLD_CHECK(me, w.start && w.now && !trainer_share(&t));
    widen(w.start, model_params(t.model), n);
    if (me->rank == 0)
        WORLD_CHECK(me, compare(t.model, json_object_get(recorded, "start"),
                                w.start) < 1e-6);
    WORLD_CHECK(me, !trainer_epoch(&t, &stats, after_step, &w));
    WORLD_CHECK(me, !trainer_test(&t, &stats));
    if (me->rank == 0)
        compare_stats(&w, &stats);
    free(w.start);
    free(w.now);
    return job_end(me, &t, &d);
}

static const char *text(const json_t *run, const char *key)
{
    return json_string_value(json_object_get(run, key));
}

static struct job *job_new(const json_t *run, int ranks)
{
    struct job *job = job_page(sizeof(*job));
    struct args *a = &job->args;

    job_args(a);
    job->run = run;
    a->dataset = "mnist";
    a->data_dir = dir;
    a->init = INIT_TORCH;
    a->epochs = 1;
    a->opt = strcmp(text(run, "opt"), "sgd") ? OPTIM_ADAM : OPTIM_SGD;
    a->dropout_off = !strcmp(text(run, "dropout"), "off");
    a->momentum = number(run, "momentum");
    a->lr = number(run, "lr");
    a->batch_size = (uint64_t)number(run, "batch") / (uint64_t)ranks;
    a->limit_train = (uint64_t)(number(run, "batch") * number(run, "steps"));
    a->limit_test = N_TEST;
    a->test_batch_size = 16; /* 16, 16 and 8 */
    return job;
}

/* Run it among so many ranks, and hold it against PyTorch. */
static void follow(const json_t *run, int ranks)
{
    struct job *job = job_new(run, ranks);

    ck_assert_int_eq(world_fork(ranks, train, job, DEADLINE), 0);
    ck_assert_msg(job->worst_gradients < GRADIENTS && job->worst_moved < MOVED &&
                      job->worst_loss < LOSS,
                  "%s, momentum %g, dropout %s, batch %g, %d ranks: wrong by "
                  "%.1e of the gradients, %.1e of the way, %.1e in the loss",
                  text(run, "opt"), job->args.momentum, text(run, "dropout"),
                  number(run, "batch"), ranks, job->worst_gradients,
                  job->worst_moved, job->worst_loss);
    ck_assert_double_eq_tol(job->right, number(run, "test_right"), 1.5);
    munmap(job, sizeof(*job));
}

static const json_t *run_at(int i)
{
    return json_array_get(json_object_get(recorded, "runs"), (size_t)i);
}

START_TEST(one_rank_goes_the_way_of_torch) { follow(run_at(_i), 1); }
END_TEST

/* The same global batch in parts: of 3, 2 and 1 images. */
START_TEST(ranks_go_the_way_of_torch)
{
    static const struct {
        int run, ranks;
    } cases[] = {{3, 2}, {4, 3}, {3, 6}, {5, 6}};

    follow(run_at(cases[_i].run), cases[_i].ranks);
}
END_TEST

static void set_up(void)
{
    recorded = recorded_load("torch.json");
    folder_make(dir);
    write_part("train", 0, N_TRAIN);
    write_part("t10k", N_TRAIN, N_TEST);
}

static void tear_down(void)
{
    folder_remove(dir);
    json_decref(recorded);
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_torch");
    TCase *torch = suite_case(suite, "torch", 4 * DEADLINE);

    tcase_add_unchecked_fixture(torch, set_up, tear_down);
    tcase_add_loop_test(torch, one_rank_goes_the_way_of_torch, 0, 9);
    tcase_add_loop_test(torch, ranks_go_the_way_of_torch, 0, 4);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
