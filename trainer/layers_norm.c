/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_norm.c - batch normalization, an addition, and relu:
 *
 *   out = relu(weight (in - mean) / sqrt(variance + epsilon) + bias + plus)
 *
 * for each channel.  In training, mean and variance are those of the batch, and
 * the running statistics move a tenth of the way towards them.  A test uses the
 * running ones.  As in PyTorch the running variance is the unbiased estimate,
 * and that of the batch is not.
 *
 * The statistics must be those of all images of a rank's step, so a model with
 * such a layer computes its batch as one chunk.  This costs memory for the
 * activations of the whole batch, but only once: gradients of activations share
 * a few buffers (gradient_plan.h), and a layer writes the gradient of its input
 * over the input.
 *
 * Sums within an image have single precision, and sums over images double.
 *
 * Source: Ioffe and Szegedy, "Batch normalization", ICML 2015.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct norm {
    float *mean, *root; /* [channels] of this pass; root: 1 / deviation */
    float *a, *b, *c;   /* [channels]: what a loop needs for each channel */
    float *sums;        /* [2][channels] of one image */
    double *totals;     /* [2][channels] of all */
};

static int norm_shape(struct layer *l)
{
    size_t n = (size_t)l->in.channels;

    l->out = l->in;
    l->n_weights = l->n_biases = n;
    l->n_running = 2 * n;
    if (l->in.block != l->in.channels || n % SIMD_WIDTH)
        return train_fail("layer %d: %zu channels cannot be normalized; plain "
                          "order and a multiple of %d is needed",
                          l->index, n, SIMD_WIDTH);
    return 0;
}

static void norm_fini(struct layer *l)
{
    struct norm *s = l->state;

    if (!s)
        return;
    free(s->mean);
    free(s->totals);
    free(s);
    l->state = NULL;
}

static int norm_init(struct layer *l)
{
    size_t n = (size_t)l->in.channels;
    struct norm *s = calloc(1, sizeof(*s));

    l->state = s;
    if (s) {
        s->mean = calloc(7 * n, sizeof(float));
        s->totals = calloc(2 * n, sizeof(double));
    }
    if (!s || !s->mean || !s->totals) {
        norm_fini(l);
        return train_fail("out of memory for layer %d; use fewer ranks on this "
                          "machine",
                          l->index);
    }
    s->root = s->mean + n;
    s->a = s->root + n;
    s->b = s->a + n;
    s->c = s->b + n;
    s->sums = s->c + n;
    return 0;
}

/* ---- loops over the pixels of one image ---- */

/* What such a loop reads and writes; n: pixels. */
struct image {
    const float *in, *plus;
    float *out, *dout, *din;
    size_t n, channels;
    const float *mean, *a, *b, *c;
    float *sums;
};

/* sums[0] += (in - mean)^power, for power 1 or 2. */
SIMD_BODY void moment_body(const struct image *m, int power)
{
    const vec8f one = {1, 1, 1, 1, 1, 1, 1, 1};
    const float *x = m->in;

    for (size_t i = 0; i < m->n; i++, x += m->channels)
        for (size_t c = 0; c < m->channels; c += SIMD_WIDTH) {
            vec8f d = *(const vec8f *)(x + c) - *(const vec8f *)(m->mean + c);

            *(vec8f *)(m->sums + c) += d * (power == 2 ? d : one);
        }
}

SIMD_KERNEL(moment, (const struct image *m, int power), (m, power))

/* out = a in + b + plus, then relu */
SIMD_BODY void scale_body(const struct image *m, int relu)
{
    for (size_t at = 0; at < m->n * m->channels; at += m->channels)
        for (size_t c = 0; c < m->channels; c += SIMD_WIDTH) {
            vec8f v =
                *(const vec8f *)(m->in + at + c) * *(const vec8f *)(m->a + c) +
                *(const vec8f *)(m->b + c);

            if (m->plus)
                v += *(const vec8f *)(m->plus + at + c);
            if (relu)
                v = (vec8f)((vec8i)v & ~(v <= 0.0f)); /* NaN stays */
            *(vec8f *)(m->out + at + c) = v;
        }
}

SIMD_KERNEL(scale, (const struct image *m, int relu), (m, relu))

/* sums[0] += dout, sums[1] += dout (in - mean) */
SIMD_BODY void products_body(const struct image *m)
{
    for (size_t at = 0; at < m->n * m->channels; at += m->channels)
        for (size_t c = 0; c < m->channels; c += SIMD_WIDTH) {
            vec8f d = *(const vec8f *)(m->dout + at + c);
            vec8f x = *(const vec8f *)(m->in + at + c) -
                      *(const vec8f *)(m->mean + c);

            *(vec8f *)(m->sums + c) += d;
            *(vec8f *)(m->sums + m->channels + c) += d * x;
        }
}

SIMD_KERNEL(products, (const struct image *m), (m))

/* din = a dout + b (in - mean) + c; din may be in */
SIMD_BODY void back_body(const struct image *m)
{
    for (size_t at = 0; at < m->n * m->channels; at += m->channels)
        for (size_t c = 0; c < m->channels; c += SIMD_WIDTH) {
            vec8f x = *(const vec8f *)(m->in + at + c) -
                      *(const vec8f *)(m->mean + c);

            *(vec8f *)(m->din + at + c) =
                *(const vec8f *)(m->a + c) *
                    *(const vec8f *)(m->dout + at + c) +
                *(const vec8f *)(m->b + c) * x + *(const vec8f *)(m->c + c);
        }
}

SIMD_KERNEL(back, (const struct image *m), (m))

/* ---- passes ---- */

static struct image image_of(const struct layer *l, const struct layer_io *io,
                             int i)
{
    const struct norm *s = l->state;
    size_t at = (size_t)i * shape_len(&l->in), n = (size_t)l->in.channels;

    return (struct image){
        .in = io->in + at,
        .plus = io->plus ? io->plus + at : NULL,
        .out = io->out + at,
        .dout = io->dout ? io->dout + at : NULL,
        .din = io->din ? io->din + at : NULL,
        .n = shape_len(&l->in) / n,
        .channels = n,
        .mean = s->mean,
        .a = s->a,
        .b = s->b,
        .c = s->c,
        .sums = s->sums,
    };
}

static void clear_totals(const struct layer *l)
{
    struct norm *s = l->state;

    memset(s->totals, 0, 2 * (size_t)l->in.channels * sizeof(*s->totals));
}

/* Run `loop` over one image, and add its sums to the totals. */
#define ADD_IMAGE(l, n, loop)                                                  \
    do {                                                                       \
        struct norm *s_ = (l)->state;                                          \
                                                                               \
        memset(s_->sums, 0, (n) * sizeof(float));                              \
        loop;                                                                  \
        for (size_t c_ = 0; c_ < (n); c_++)                                    \
            s_->totals[c_] += (double)s_->sums[c_];                            \
    } while (0)

/* Return the number of images that the statistics are of. */
static int n_images(const struct layer *l, const struct pass *pass)
{
    return pass->n ? pass->n : l->chunk;
}

/* Set totals to the mean of (in - mean)^power over the first `images`. */
static void find_moment(const struct layer *l, const struct layer_io *io,
                        int images, int power)
{
    size_t n = (size_t)l->in.channels;
    struct norm *s = l->state;
    double count = (double)images * (double)(shape_len(&l->in) / n);

    clear_totals(l);
    for (int i = 0; i < images; i++) {
        struct image m = image_of(l, io, i);

        ADD_IMAGE(l, n, moment(&m, power));
    }
    for (size_t c = 0; c < n; c++)
        s->totals[c] /= count;
}

static double root_of(double variance)
{
    return 1 / sqrt(variance + NORM_EPSILON);
}

/* Find the batch's mean and variance, and move the running ones towards them. */
static void find_statistics(struct layer *l, const struct layer_io *io,
                            int images)
{
    size_t n = (size_t)l->in.channels;
    struct norm *s = l->state;
    double count = (double)images * (double)(shape_len(&l->in) / n);
    double unbiased = count > 1 ? count / (count - 1) : 1;
    float *mean = l->running, *variance = l->running + n;

    memset(s->mean, 0, n * sizeof(float));
    find_moment(l, io, images, 1);
    for (size_t c = 0; c < n; c++)
        s->mean[c] = (float)s->totals[c];
    find_moment(l, io, images, 2);
    for (size_t c = 0; c < n; c++) {
        s->root[c] = (float)root_of(s->totals[c]);
        mean[c] += NORM_MOMENTUM * (s->mean[c] - mean[c]);
        variance[c] +=
            NORM_MOMENTUM * ((float)(s->totals[c] * unbiased) - variance[c]);
    }
}

static void take_running(struct layer *l)
{
    size_t n = (size_t)l->in.channels;
    struct norm *s = l->state;

    memcpy(s->mean, l->running, n * sizeof(float));
    for (size_t c = 0; c < n; c++)
        s->root[c] = (float)root_of((double)l->running[n + c]);
}

static int norm_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    struct norm *s = l->state;

    if (pass->is_training)
        find_statistics(l, io, n_images(l, pass));
    else
        take_running(l);
    for (int c = 0; c < l->in.channels; c++) {
        s->a[c] = l->weights[c] * s->root[c];
        s->b[c] = l->biases[c] - s->mean[c] * s->a[c];
    }
    for (int i = 0; i < l->chunk; i++) {
        struct image m = image_of(l, io, i);

        scale(&m, l->spec.relu);
    }
    return 0;
}

/* With N values a channel, x = (in - mean) root, d = dout:
 *   dbias = sum d, dweight = sum d x,
 *   din = weight root (d - dbias / N - x dweight / N) in training,
 *         weight root d with running statistics.
 * totals holds dbias and dweight / root. */
static void find_factors(struct layer *l, int images, int is_training)
{
    size_t n = (size_t)l->in.channels;
    struct norm *s = l->state;
    double count = (double)images * (double)(shape_len(&l->in) / n);

    for (size_t c = 0; c < n; c++) {
        double root = (double)s->root[c], dweight = s->totals[n + c] * root;
        double a = (double)l->weights[c] * root;

        l->dbiases[c] += (float)s->totals[c];
        l->dweights[c] += (float)dweight;
        s->a[c] = (float)a;
        s->b[c] = is_training ? (float)(-a * root * dweight / count) : 0;
        s->c[c] = is_training ? (float)(-a * s->totals[c] / count) : 0;
    }
}

static int norm_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t n = (size_t)l->in.channels, len = shape_len(&l->in);
    int images = n_images(l, pass);
    size_t rest = (size_t)(l->chunk - images) * len * sizeof(float);

    if (l->spec.relu)
        layer__relu_back(io->out, io->dout, (size_t)l->chunk * len);
    if (io->dplus)
        memcpy(io->dplus, io->dout, (size_t)l->chunk * len * sizeof(float));
    clear_totals(l);
    for (int i = 0; i < images; i++) {
        struct image m = image_of(l, io, i);

        ADD_IMAGE(l, 2 * n, products(&m));
    }
    find_factors(l, images, pass->is_training);
    for (int i = 0; io->din && i < images; i++) {
        struct image m = image_of(l, io, i);

        back(&m);
    }
    if (io->din && rest)
        memset(io->din + (size_t)images * len, 0, rest);
    return 0;
}

const struct layer_ops layer_norm = {
    .name = "norm",
    .may_overwrite = 1, /* din is written value by value, after in was read */
    .reads_out = 0,
    .shape = norm_shape,
    .init = norm_init,
    .fini = norm_fini,
    .forward = norm_forward,
    .backward = norm_backward,
};
