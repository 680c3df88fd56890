/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_pool_any.c - the largest of each window, whatever its size, step and
 * rim, in plain order; and its relu.
 *
 * Windows may overlap, so a value's gradient is a sum.  As in layers_pool.c the
 * winner (the first of equals) is found again in the backward pass, and of a
 * window with a NaN the largest is NaN.
 */
#include "trainer/error.h"
#include "trainer/layers.h"

#include <math.h>
#include <string.h>

/* Where a window lies in its map: what the rim cuts off is left out. */
struct window {
    int y0, y1, x0, x1;
};

static int any_shape(struct layer *l)
{
    int height = layer_windows(l, l->in.height);
    int width = layer_windows(l, l->in.width);

    l->out = (struct shape){l->in.channels, height, width, l->in.channels};
    if (height < 1 || width < 1 || 2 * l->spec.pad > l->spec.kernel ||
        l->in.block != l->in.channels)
        return train_fail("layer %d: maps of %d x %d cannot be cut into "
                          "windows of %d x %d",
                          l->index, l->in.height, l->in.width, l->spec.kernel,
                          l->spec.kernel);
    return 0;
}

static int at_least_0(int x) { return x > 0 ? x : 0; }

static int at_most(int x, int most) { return x < most ? x : most; }

static struct window window_at(const struct layer *l, int y, int x)
{
    int step = layer_stride(l), pad = l->spec.pad, k = l->spec.kernel;

    return (struct window){
        at_least_0(y * step - pad), at_most(y * step - pad + k, l->in.height),
        at_least_0(x * step - pad), at_most(x * step - pad + k, l->in.width)};
}

/* Return the place of the largest of a channel's values in the window. */
static size_t winner(const struct layer *l, const float *in,
                     const struct window *w, int c)
{
    size_t n = (size_t)l->in.channels, best = SIZE_MAX;

    for (int y = w->y0; y < w->y1; y++)
        for (int x = w->x0; x < w->x1; x++) {
            size_t at =
                ((size_t)y * (size_t)l->in.width + (size_t)x) * n + (size_t)c;

            if (best == SIZE_MAX || in[at] > in[best] ||
                (isnan(in[at]) && !isnan(in[best])))
                best = at;
        }
    return best;
}

static int any_forward(struct layer *l, const struct layer_io *io,
                       const struct pass *pass)
{
    float *out = io->out;

    (void)pass;
    for (int i = 0; i < l->chunk; i++) {
        const float *in = io->in + (size_t)i * shape_len(&l->in);

        for (int y = 0; y < l->out.height; y++)
            for (int x = 0; x < l->out.width; x++) {
                struct window w = window_at(l, y, x);

                for (int c = 0; c < l->in.channels; c++)
                    *out++ = in[winner(l, in, &w, c)];
            }
    }
    if (l->spec.relu)
        layer__relu(io->out, (size_t)l->chunk * shape_len(&l->out));
    return 0;
}

static int any_backward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t len = shape_len(&l->in);
    const float *dout = io->dout;

    (void)pass;
    if (!io->din)
        return 0;
    if (l->spec.relu)
        layer__relu_back(io->out, io->dout,
                         (size_t)l->chunk * shape_len(&l->out));
    memset(io->din, 0, (size_t)l->chunk * len * sizeof(float));
    for (int i = 0; i < l->chunk; i++) {
        const float *in = io->in + (size_t)i * len;
        float *din = io->din + (size_t)i * len;

        for (int y = 0; y < l->out.height; y++)
            for (int x = 0; x < l->out.width; x++) {
                struct window w = window_at(l, y, x);

                for (int c = 0; c < l->in.channels; c++)
                    din[winner(l, in, &w, c)] += *dout++;
            }
    }
    return 0;
}

const struct layer_ops layer_pool_any = {
    .name = "pool",
    .may_overwrite = 0, /* windows overlap */
    .reads_out = 0,
    .shape = any_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = any_forward,
    .backward = any_backward,
};
