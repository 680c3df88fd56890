/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_conv.c - convolution of a feature map, by oneDNN.
 *
 * out[o][y][x] = bias[o] + sum over i, ky, kx of
 *     weights[o][i][ky][kx] * in[i][stride y + ky - pad][stride x + kx - pad]
 * where values beyond the map's edge are 0.
 *
 * If a max pool follows, it should apply the relu, since it has only a quarter of
 * the values.  The result is the same: max and relu are monotonic.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/onednn.h"

static int conv_shape(struct layer *l)
{
    int kernel = l->spec.kernel;

    l->out = (struct shape){l->spec.units, layer_windows(l, l->in.height),
                            layer_windows(l, l->in.width),
                            l->in.block == l->in.channels ? l->spec.units
                                                          : l->in.block};
    if (l->out.height < 1 || l->out.width < 1 || l->spec.units % l->out.block)
        return train_fail("layer %d: a convolution cannot make %d maps of %d "
                          "x %d", l->index, l->spec.units, l->out.height,
                          l->out.width);
    l->fan_in = l->in.channels * kernel * kernel;
    l->fan_out = l->out.channels * kernel * kernel;
    l->n_weights = (size_t)l->fan_in * (size_t)l->out.channels;
    l->n_biases = l->spec.no_bias ? 0 : (size_t)l->out.channels;
    return 0;
}

static int conv_init(struct layer *l)
{
    struct onednn_conv_config config = {
        .chunk = l->chunk,
        .in = l->in,
        .out = l->out,
        .kernel = l->spec.kernel,
        .stride = layer_stride(l),
        .pad = l->spec.pad,
        .has_biases = !l->spec.no_bias,
        .is_training = l->dweights != NULL,
    };
    struct onednn_conv *conv;

    if (onednn_conv_create(&conv, &config))
        return -1;
    l->state = conv;
    return 0;
}

static void conv_fini(struct layer *l) { onednn_conv_destroy(l->state); }

static int conv_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    (void)pass;
    if (l->is_stale && onednn_conv_load(l->state, l->weights))
        return -1;
    l->is_stale = 0;
    if (onednn_conv_forward(l->state, io->in, l->biases, io->out))
        return -1;
    if (l->spec.relu)
        layer__relu(io->out, (size_t)l->chunk * shape_len(&l->out));
    return 0;
}

static int conv_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    (void)pass;
    if (l->spec.relu)
        layer__relu_back(io->out, io->dout,
                         (size_t)l->chunk * shape_len(&l->out));
    if (onednn_conv_backward_weights(l->state, io->in, io->dout, l->dweights,
                                     l->dbiases))
        return -1;
    return io->din ? onednn_conv_backward_in(l->state, io->dout, io->din) : 0;
}

const struct layer_ops layer_conv = {
    .name = "conv",
    .may_overwrite = 1, /* in is last read before din is written */
    .reads_out = 0,
    .shape = conv_shape,
    .init = conv_init,
    .fini = conv_fini,
    .forward = conv_forward,
    .backward = conv_backward,
};
