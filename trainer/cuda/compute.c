/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.c - arithmetic over flat arrays, the loss, and the optimizers' steps. */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"

enum { SQUARES = 4096 }; /* sums of squares that a last kernel adds up */

/* Sums of a part, of squares or of the loss. */
static struct gpu_room sums;

static struct train_span doubles(const void *at, size_t n)
{
    return span(at, n * sizeof(double));
}

int compute_init(void) { return gpu_room(&sums, SQUARES * sizeof(double)); }

void compute_fini(void)
{
    gpu_release(sums.at);
    sums = (struct gpu_room){0};
}

/* Add rows of `columns` sums to the total. */
static void add_up(struct train_span parts, double *total, size_t columns)
{
    struct train_span to = doubles(total, columns);
    uint32_t add = 1;

    LAUNCH(fold_f64, columns, ARG(parts), ARG(to), ARG(add));
}

/* ---- flat arrays ---- */

void compute_add(float *to, const float *from, size_t n)
{
    struct train_span out = floats(to, n), in = floats(from, n);

    LAUNCH(add_f32, n, ARG(out), ARG(in));
}

void compute_squares(const float *values, size_t n, double *sum)
{
    struct train_span from = floats(values, n);
    struct train_span parts =
        doubles(sums.at, n < SQUARES ? n : (size_t)SQUARES);

    if (n && !LAUNCH(squares_f32, SQUARES, ARG(from), ARG(parts)))
        add_up(parts, sum, 1);
}

void compute_clip(float *values, size_t n, const double *squares, double most)
{
    struct train_span all = floats(values, n), sum = doubles(squares, 1);

    LAUNCH(clip_f32, n, ARG(all), ARG(sum), ARG(most));
}

void compute_spoil(const struct model_score *score, float *values, size_t n,
                   size_t parts)
{
    struct train_span loss = span(score, sizeof(*score));
    struct train_span all = floats(values, n);
    uint32_t n_parts = (uint32_t)parts;

    LAUNCH(spoil_f32, parts, ARG(loss), ARG(all), ARG(n_parts));
}

void compute_pack(enum wire wire, const float *from, uint16_t *to, size_t n)
{
    struct train_span in = floats(from, n), out = span(to, n * sizeof(*to));

    if (wire == WIRE_F16)
        LAUNCH(pack_f16, n, ARG(in), ARG(out));
    else
        LAUNCH(pack_bf16, n, ARG(in), ARG(out));
}

void compute_unpack(enum wire wire, const uint16_t *from, float *to, size_t n)
{
    struct train_span in = span(from, n * sizeof(*from)), out = floats(to, n);

    if (wire == WIRE_F16)
        LAUNCH(unpack_f16, n, ARG(in), ARG(out));
    else
        LAUNCH(unpack_bf16, n, ARG(in), ARG(out));
}

/* ---- the loss ---- */

void compute_loss(const struct loss_job *job, struct model_score *score)
{
    size_t rows = (size_t)job->n, n = rows * (size_t)job->classes;
    struct train_span scores = values(job->scores, n);
    struct train_span labels = span(job->labels, rows);
    struct train_span dscores = values(job->dscores, n), parts;

    if (rows == 0 || gpu_room(&sums, rows * 2 * sizeof(double)))
        return;
    parts = doubles(sums.at, 2 * rows);
    if (!LAUNCH_VALUES(softmax, rows, ARG(scores), ARG(labels), ARG(dscores),
                       ARG(parts), ARG(job->classes), ARG(job->scale),
                       ARG(job->smoothing)))
        add_up(parts, &score->loss, 2);
}

/* ---- optimizers: see trainer/optim.c ---- */

static void sgd_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span velocity = floats(o->state + part->at, part->n);
    struct train_span canary = floats(part->canary, 1);
    struct train_span step = compute_step_numbers();

    LAUNCH(sgd_f32, part->n, ARG(params), ARG(gradients), ARG(velocity),
           ARG(canary), ARG(step), ARG(o->momentum), ARG(o->weight_decay),
           ARG(o->nesterov));
}

static void adagrad_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span sum = floats(o->state + part->at, part->n);
    struct train_span canary = floats(part->canary, 1);
    struct train_span step = compute_step_numbers();

    LAUNCH(adagrad_f32, part->n, ARG(params), ARG(gradients), ARG(sum),
           ARG(canary), ARG(step), ARG(o->epsilon), ARG(o->weight_decay));
}

static void adam_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span mean = floats(o->state + part->at, part->n);
    struct train_span square = floats(o->state + o->n + part->at, part->n);
    struct train_span canary = floats(part->canary, 1);
    struct train_span step = compute_step_numbers();

    LAUNCH(adam_f32, part->n, ARG(params), ARG(gradients), ARG(mean),
           ARG(square), ARG(canary), ARG(step), ARG(o->beta1), ARG(o->beta2),
           ARG(o->weight_decay));
}

void compute_step(struct optim *o, const struct optim_part *part)
{
    if (o->kind == OPTIM_SGD)
        sgd_step(o, part);
    else if (o->kind == OPTIM_ADAGRAD)
        adagrad_step(o, part);
    else
        adam_step(o, part);
}
