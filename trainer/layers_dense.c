/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_dense.c - every output from every input: out = in weights + bias.
 *
 * Weights are [in][out], so that each of the three passes is one matrix product.
 * The values of a map are in height, width, channel order.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/onednn.h"

static int dense_shape(struct layer *l)
{
    l->out = (struct shape){l->spec.units, 1, 1, l->spec.units};
    if (l->in.block != l->in.channels)
        return train_fail("layer %d: a dense layer reads plain channel order",
                          l->index);
    l->fan_in = (int)shape_len(&l->in);
    l->fan_out = l->spec.units;
    l->n_weights = (size_t)l->fan_in * (size_t)l->fan_out;
    l->n_biases = (size_t)l->fan_out;
    return 0;
}

static int dense_forward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    struct onednn_product product = {.rows = l->chunk,
                                     .columns = l->fan_out,
                                     .inner = l->fan_in};

    (void)pass;
    if (onednn_multiply(&product, io->in, l->weights, io->out))
        return -1;
    for (int i = 0; i < l->chunk; i++)
        for (int o = 0; o < l->fan_out; o++)
            io->out[i * l->fan_out + o] += l->biases[o];
    if (l->spec.relu)
        layer__relu(io->out, (size_t)l->chunk * (size_t)l->fan_out);
    return 0;
}

static void add_to_biases(struct layer *l, const float *dout)
{
    for (int i = 0; i < l->chunk; i++)
        for (int o = 0; o < l->fan_out; o++)
            l->dbiases[o] += dout[i * l->fan_out + o];
}

static int dense_backward(struct layer *l, const struct layer_io *io,
                          const struct pass *pass)
{
    struct onednn_product weights = {.rows = l->fan_in,
                                     .columns = l->fan_out,
                                     .inner = l->chunk,
                                     .a_turned = 1,
                                     .beta = pass->is_first ? 0 : 1};
    struct onednn_product in = {.rows = l->chunk,
                                .columns = l->fan_in,
                                .inner = l->fan_out,
                                .b_turned = 1};

    if (l->spec.relu)
        layer__relu_back(io->out, io->dout,
                         (size_t)l->chunk * (size_t)l->fan_out);
    add_to_biases(l, io->dout);
    if (onednn_multiply(&weights, io->in, io->dout, l->dweights))
        return -1;
    return io->din ? onednn_multiply(&in, io->dout, l->weights, io->din) : 0;
}

const struct layer_ops layer_dense = {
    .name = "dense",
    .may_overwrite = 1, /* in is last read before din is written */
    .reads_out = 0,
    .writes_over = 1,
    .shape = dense_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = dense_forward,
    .backward = dense_backward,
};
