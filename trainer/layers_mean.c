/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_mean.c - the mean of each map, in plain order: one value for each
 * channel. */
#include "trainer/error.h"
#include "trainer/layers.h"

static int mean_shape(struct layer *l)
{
    l->out = (struct shape){l->in.channels, 1, 1, l->in.channels};
    if (l->in.block != l->in.channels)
        return train_fail("layer %d: the mean of maps reads plain channel "
                          "order",
                          l->index);
    return 0;
}

static int mean_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t n = (size_t)l->in.channels, len = shape_len(&l->in);

    (void)pass;
    for (size_t i = 0; i < (size_t)l->chunk; i++)
        for (size_t c = 0; c < n; c++) {
            float sum = 0;

            for (size_t at = c; at < len; at += n)
                sum += io->in[i * len + at];
            io->out[i * n + c] = sum * (float)n / (float)len;
        }
    return 0;
}

static int mean_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t n = (size_t)l->in.channels, len = shape_len(&l->in);

    (void)pass;
    for (size_t i = 0; io->din && i < (size_t)l->chunk; i++)
        for (size_t at = 0; at < len; at += n)
            for (size_t c = 0; c < n; c++)
                io->din[i * len + at + c] =
                    io->dout[i * n + c] * (float)n / (float)len;
    return 0;
}

const struct layer_ops layer_mean = {
    .name = "mean",
    .may_overwrite = 1, /* backward reads no values */
    .reads_out = 0,
    .shape = mean_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = mean_forward,
    .backward = mean_backward,
};
