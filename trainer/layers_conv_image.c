/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_conv_image.c - 3 x 3 convolution of an image with one channel, and
 * its relu.
 *
 * For one input channel oneDNN computes the gradients of weights by its reference
 * code, 12 ms for an image.  Here eight output channels are one vector: the nine
 * weights of a group of eight channels, or their nine sums, stay in registers
 * for a whole image.  Weights are [out][1][3][3], as in layers_conv.c.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/simd.h"

#include <string.h>

#define KERNEL 3
#define TAPS (KERNEL * KERNEL)

/* Where the eight channels of a group are in an output map. */
struct group {
    int width, height; /* of the output */
    size_t pixel;      /* floats from a pixel to the next */
};

static int image_shape(struct layer *l)
{
    l->out = (struct shape){l->spec.units, l->in.height - KERNEL + 1,
                            l->in.width - KERNEL + 1, l->out.block};
    if (l->out.block == 0)
        l->out.block = l->spec.units;
    if (l->in.channels != 1 || l->out.height < 1 || l->out.width < 1 ||
        l->spec.units % SIMD_WIDTH || l->spec.units % l->out.block)
        return train_fail("layer %d: an image of %d x %d x %d cannot become "
                          "%d maps", l->index, l->in.channels, l->in.height,
                          l->in.width, l->spec.units);
    l->fan_in = TAPS;
    l->fan_out = l->out.channels * TAPS;
    l->n_weights = (size_t)l->out.channels * TAPS;
    l->n_biases = (size_t)l->out.channels;
    return 0;
}

/* Return where group g (eight channels) of an output map begins. */
static size_t group_start(const struct shape *out, int g)
{
    int channel = g * SIMD_WIDTH;
    size_t block = (size_t)(channel / out->block);

    return block * (size_t)out->block * (size_t)out->height *
               (size_t)out->width +
           (size_t)(channel % out->block);
}

/* w[TAPS + 1][8]: the weights of eight channels, and their biases. */
SIMD_BODY void forward_body(const float *in, float *out, const float *w,
                            const struct group *g, int relu)
{
    int in_width = g->width + KERNEL - 1;
    vec8f weights[TAPS + 1];

    memcpy(weights, w, sizeof(weights));
    for (int y = 0; y < g->height; y++)
        for (int x = 0; x < g->width; x++) {
            const float *at = in + y * in_width + x;
            vec8f sum = weights[TAPS];

            for (int ky = 0; ky < KERNEL; ky++)
                for (int kx = 0; kx < KERNEL; kx++)
                    sum += weights[ky * KERNEL + kx] * at[ky * in_width + kx];
            if (relu)
                sum = (vec8f)((vec8i)sum & ~(sum <= 0.0f)); /* NaN stays */
            *(vec8f *)out = sum;
            out += g->pixel;
        }
}

SIMD_KERNEL(forward,
            (const float *in, float *out, const float *w,
             const struct group *g, int relu),
            (in, out, w, g, relu))

/* Adds to sums[TAPS + 1][8]; with relu, gradients count where out > 0. */
SIMD_BODY void backward_body(const float *in, const float *out,
                             const float *dout, float *sums,
                             const struct group *g)
{
    int in_width = g->width + KERNEL - 1;
    vec8f sum[TAPS + 1] = {{0}};

    for (int y = 0; y < g->height; y++)
        for (int x = 0; x < g->width; x++) {
            const float *at = in + y * in_width + x;
            vec8f d = *(const vec8f *)dout;

            if (out) {
                d = (vec8f)((vec8i)d & (*(const vec8f *)out > 0.0f));
                out += g->pixel;
            }
            for (int ky = 0; ky < KERNEL; ky++)
                for (int kx = 0; kx < KERNEL; kx++)
                    sum[ky * KERNEL + kx] += d * at[ky * in_width + kx];
            sum[TAPS] += d;
            dout += g->pixel;
        }
    for (int t = 0; t <= TAPS; t++)
        ((vec8f *)sums)[t] += sum[t];
}

SIMD_KERNEL(backward,
            (const float *in, const float *out, const float *dout, float *sums,
             const struct group *g),
            (in, out, dout, sums, g))

static struct group group_of(const struct layer *l)
{
    return (struct group){l->out.width, l->out.height, (size_t)l->out.block};
}

static void gather_weights(const struct layer *l, int first,
                           float w[TAPS + 1][SIMD_WIDTH])
{
    for (int c = 0; c < SIMD_WIDTH; c++) {
        for (int t = 0; t < TAPS; t++)
            w[t][c] = l->weights[(first + c) * TAPS + t];
        w[TAPS][c] = l->biases[first + c];
    }
}

static void scatter_sums(struct layer *l, int first,
                         float sums[TAPS + 1][SIMD_WIDTH])
{
    for (int c = 0; c < SIMD_WIDTH; c++) {
        for (int t = 0; t < TAPS; t++)
            l->dweights[(first + c) * TAPS + t] += sums[t][c];
        l->dbiases[first + c] += sums[TAPS][c];
    }
}

static int image_forward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t in_len = shape_len(&l->in), out_len = shape_len(&l->out);
    struct group group = group_of(l);
    float w[TAPS + 1][SIMD_WIDTH];

    (void)pass;
    for (int g = 0; g < l->out.channels / SIMD_WIDTH; g++) {
        size_t start = group_start(&l->out, g);

        gather_weights(l, g * SIMD_WIDTH, w);
        for (int i = 0; i < l->chunk; i++)
            forward(io->in + (size_t)i * in_len,
                    io->out + (size_t)i * out_len + start, w[0], &group,
                    l->spec.relu);
    }
    return 0;
}

static int image_backward(struct layer *l, const struct layer_io *io,
                          const struct pass *pass)
{
    size_t in_len = shape_len(&l->in), out_len = shape_len(&l->out);
    struct group group = group_of(l);

    (void)pass;
    if (io->din)
        return train_fail("layer %d: an image has no gradient", l->index);
    for (int g = 0; g < l->out.channels / SIMD_WIDTH; g++) {
        size_t start = group_start(&l->out, g);
        float sums[TAPS + 1][SIMD_WIDTH] = {{0}};

        for (int i = 0; i < l->chunk; i++) {
            size_t at = (size_t)i * out_len + start;

            backward(io->in + (size_t)i * in_len,
                     l->spec.relu ? io->out + at : NULL, io->dout + at,
                     sums[0], &group);
        }
        scatter_sums(l, g * SIMD_WIDTH, sums);
    }
    return 0;
}

const struct layer_ops layer_conv_image = {
    .name = "conv_image",
    .may_overwrite = 0,
    .reads_out = 1,
    .shape = image_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = image_forward,
    .backward = image_backward,
};
