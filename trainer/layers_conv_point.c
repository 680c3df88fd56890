/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_conv_point.c - a convolution whose only window covers the whole map.  A
 * deep network has it when its images are small: 3 x 3 on the last maps.
 *
 * Each image has one pixel of output, computed from all of its values: a product
 * with the matrix of those weights that meet the map.  The other weights (eight of
 * nine, for 3 x 3 on one pixel) only meet the padding and are never read.  oneDNN would
 * reorder all weights for three kernels once a step, which takes longer than the
 * products.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/onednn.h"

#include <stdlib.h>

/* The weights that meet the map: [out channels][height][width][in channels] */
struct point {
    float *weights, *dweights; /* dweights: of one pass; NULL: forward only */
};

static int point_shape(struct layer *l)
{
    int kernel = l->spec.kernel;

    l->out = (struct shape){l->spec.units, 1, 1, l->spec.units};
    l->fan_in = l->in.channels * kernel * kernel;
    l->fan_out = l->out.channels * kernel * kernel;
    l->n_weights = (size_t)l->fan_in * (size_t)l->out.channels;
    l->n_biases = l->spec.no_bias ? 0 : (size_t)l->out.channels;
    if (l->in.block != l->in.channels || layer_windows(l, l->in.height) != 1 ||
        layer_windows(l, l->in.width) != 1 ||
        l->in.height + l->spec.pad > kernel ||
        l->in.width + l->spec.pad > kernel)
        return train_fail("layer %d: no single window of %d x %d holds a map "
                          "of %d x %d",
                          l->index, kernel, kernel, l->in.height, l->in.width);
    return 0;
}

static void point_fini(struct layer *l)
{
    struct point *s = l->state;

    if (!s)
        return;
    free(s->weights);
    free(s->dweights);
    free(s);
    l->state = NULL;
}

static int point_init(struct layer *l)
{
    size_t n = shape_len(&l->in) * (size_t)l->out.channels;
    struct point *s = calloc(1, sizeof(*s));

    l->state = s;
    if (s) {
        s->weights = malloc(n * sizeof(float));
        s->dweights = l->dweights ? malloc(n * sizeof(float)) : NULL;
    }
    if (s && s->weights && (s->dweights || !l->dweights))
        return 0;
    point_fini(l);
    return train_fail("out of memory for layer %d; use fewer ranks on this "
                      "machine",
                      l->index);
}

/* A run of the matrix's weights, those of all input channels for one output channel
 * and one pixel: where it begins in the matrix and in the layer's weights, and the
 * step there. */
struct run {
    size_t own, at, step, n;
};

static int n_runs(const struct layer *l)
{
    return l->out.channels * l->in.height * l->in.width;
}

static struct run run_at(const struct layer *l, int i)
{
    int kernel = l->spec.kernel, n = l->in.channels;
    int pixel = i % (l->in.height * l->in.width);
    int channel = i / (l->in.height * l->in.width);
    int y = pixel / l->in.width + l->spec.pad;
    int x = pixel % l->in.width + l->spec.pad;

    return (struct run){
        .own = (size_t)i * (size_t)n,
        .at = (size_t)channel * (size_t)l->fan_in + (size_t)(y * kernel + x),
        .step = (size_t)(kernel * kernel),
        .n = (size_t)n,
    };
}

static void take_weights(const struct layer *l)
{
    const struct point *s = l->state;

    for (int i = 0; i < n_runs(l); i++) {
        struct run r = run_at(l, i);

        for (size_t k = 0; k < r.n; k++)
            s->weights[r.own + k] = l->weights[r.at + k * r.step];
    }
}

static void give_gradients(const struct layer *l)
{
    const struct point *s = l->state;

    for (int i = 0; i < n_runs(l); i++) {
        struct run r = run_at(l, i);

        for (size_t k = 0; k < r.n; k++)
            l->dweights[r.at + k * r.step] += s->dweights[r.own + k];
    }
}

static int point_forward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    const struct point *s = l->state;
    size_t n = (size_t)l->out.channels, len = (size_t)l->chunk * n;
    struct onednn_product product = {.rows = l->chunk,
                                     .columns = l->out.channels,
                                     .inner = (int)shape_len(&l->in),
                                     .b_turned = 1};

    (void)pass;
    if (l->is_stale)
        take_weights(l);
    l->is_stale = 0;
    if (onednn_multiply(&product, io->in, s->weights, io->out))
        return -1;
    for (size_t i = 0; l->n_biases && i < len; i++)
        io->out[i] += l->biases[i % n];
    if (l->spec.relu)
        layer__relu(io->out, len);
    return 0;
}

static int point_backward(struct layer *l, const struct layer_io *io,
                          const struct pass *pass)
{
    const struct point *s = l->state;
    size_t n = (size_t)l->out.channels, len = (size_t)l->chunk * n;
    struct onednn_product weights = {.rows = l->out.channels,
                                     .columns = (int)shape_len(&l->in),
                                     .inner = l->chunk,
                                     .a_turned = 1};
    struct onednn_product in = {.rows = l->chunk,
                                .columns = (int)shape_len(&l->in),
                                .inner = l->out.channels};

    (void)pass;
    if (l->spec.relu)
        layer__relu_back(io->out, io->dout, len);
    for (size_t i = 0; l->n_biases && i < len; i++)
        l->dbiases[i % n] += io->dout[i];
    if (onednn_multiply(&weights, io->dout, io->in, s->dweights))
        return -1;
    give_gradients(l);
    return io->din ? onednn_multiply(&in, io->dout, s->weights, io->din) : 0;
}

const struct layer_ops layer_conv_point = {
    .name = "conv",
    .may_overwrite = 1, /* in is last read before din is written */
    .reads_out = 0,
    .shape = point_shape,
    .init = point_init,
    .fini = point_fini,
    .forward = point_forward,
    .backward = point_backward,
};
