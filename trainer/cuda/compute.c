/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.c - arithmetic over flat arrays, the loss, and the optimizers' steps. */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"

enum { SQUARES = 4096 }; /* sums of squares that a last kernel adds up */

/* Sums that the host reads: of squares, or of the loss; then the end of them. */
static struct {
    struct gpu_room sums;
    double *end; /* [2] */
} totals;

static struct train_span doubles(const void *at, size_t n)
{
    return span(at, n * sizeof(double));
}

int compute_init(void)
{
    totals.end = gpu_alloc(2 * sizeof(double));
    return totals.end ? gpu_room(&totals.sums, SQUARES * sizeof(double))
                      : gpu_no_memory(2 * sizeof(double));
}

void compute_fini(void)
{
    gpu_release(totals.sums.at);
    gpu_release(totals.end);
    totals.sums = (struct gpu_room){0};
    totals.end = NULL;
}

/* Add up rows of `columns` sums, and read their sums. */
static int read_totals(struct train_span sums, double *values, size_t columns)
{
    struct train_span end = doubles(totals.end, columns);
    uint32_t add = 0;

    if (LAUNCH(fold_f64, columns, ARG(sums), ARG(end), ARG(add)))
        return -1;
    return gpu_read(values, totals.end, columns * sizeof(double));
}

/* ---- flat arrays ---- */

void compute_add(float *to, const float *from, size_t n)
{
    struct train_span out = floats(to, n), in = floats(from, n);

    LAUNCH(add_f32, n, ARG(out), ARG(in));
}

void compute_scale(float *values, size_t n, float factor)
{
    struct train_span all = floats(values, n);

    LAUNCH(scale_f32, n, ARG(all), ARG(factor));
}

int compute_squares(const float *values, size_t n, double *sum)
{
    struct train_span from = floats(values, n);
    struct train_span sums =
        doubles(totals.sums.at, n < SQUARES ? n : (size_t)SQUARES);
    double more = 0;

    if (n == 0)
        return gpu_well();
    if (LAUNCH(squares_f32, SQUARES, ARG(from), ARG(sums)) ||
        read_totals(sums, &more, 1))
        return -1;
    *sum += more;
    return 0;
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

int compute_loss(const struct loss_job *job, struct model_score *score)
{
    size_t rows = (size_t)job->n, n = rows * (size_t)job->classes;
    struct train_span scores = values(job->scores, n);
    struct train_span labels = span(job->labels, rows);
    struct train_span dscores = values(job->dscores, n), sums;
    double ends[2] = {0, 0};

    *score = (struct model_score){0};
    if (gpu_room(&totals.sums, rows * 2 * sizeof(double)))
        return -1;
    sums = doubles(totals.sums.at, 2 * rows);
    if (rows == 0)
        return gpu_well();
    if (LAUNCH_VALUES(softmax, rows, ARG(scores), ARG(labels), ARG(dscores),
                      ARG(sums), ARG(job->classes), ARG(job->scale),
                      ARG(job->smoothing)) ||
        read_totals(sums, ends, 2))
        return -1;
    score->loss = ends[0];
    score->n_right = (int)ends[1];
    return 0;
}

/* ---- optimizers: see trainer/optim.c ---- */

static void sgd_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span velocity = floats(o->state + part->at, part->n);
    float rate = (float)o->lr;

    LAUNCH(sgd_f32, part->n, ARG(params), ARG(gradients), ARG(velocity),
           ARG(rate), ARG(o->momentum), ARG(o->weight_decay), ARG(o->nesterov));
}

static void adagrad_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span sum = floats(o->state + part->at, part->n);
    float rate = (float)o->lr;

    LAUNCH(adagrad_f32, part->n, ARG(params), ARG(gradients), ARG(sum),
           ARG(rate), ARG(o->epsilon), ARG(o->weight_decay));
}

static void adam_step(struct optim *o, const struct optim_part *part)
{
    struct train_span params = floats(part->params, part->n);
    struct train_span gradients = floats(part->gradients, part->n);
    struct train_span mean = floats(o->state + part->at, part->n);
    struct train_span square = floats(o->state + o->n + part->at, part->n);
    struct adam_rates r = optim_adam_rates(o);

    LAUNCH(adam_f32, part->n, ARG(params), ARG(gradients), ARG(mean),
           ARG(square), ARG(r.rate), ARG(o->beta1), ARG(o->beta2),
           ARG(r.epsilon), ARG(o->weight_decay));
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
