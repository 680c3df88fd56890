/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_pool_any.c - max pooling with any window size, stride and padding, in plain
 * height, width, channel order; and relu.
 *
 * Windows may overlap, so that a value's gradient is a sum.  As in layers_pool.c
 * the backward pass finds the largest value again (the first one, if several are
 * equal), and the largest value of a window with a NaN is NaN.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/simd.h"

#include <math.h>
#include <string.h>

/* Where a window is in its map, without the part in the padding. */
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
        return train_refuse("layer %d: maps of %d x %d cannot be cut into "
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

/* Return where a pixel's first channel is. */
static size_t pixel_at(const struct layer *l, int y, int x)
{
    return ((size_t)y * (size_t)l->in.width + (size_t)x) *
           (size_t)l->in.channels;
}

/* ---- eight channels at a time ---- */

/* The largest value so far of each of eight channels, and its number in the
 * window. */
struct best {
    vec8f value;
    vec8i place;
};

SIMD_BODY struct best best_of(const struct layer *l, const float *in,
                              const struct window *w, int c)
{
    struct best best = {*(const vec8f *)(in + pixel_at(l, w->y0, w->x0) + c),
                        {0}};
    int place = 0;

    for (int y = w->y0; y < w->y1; y++)
        for (int x = w->x0; x < w->x1; x++, place++) {
            vec8f v = *(const vec8f *)(in + pixel_at(l, y, x) + c);
            vec8i wins =
                (v > best.value) | ((v != v) & (best.value == best.value));

            best.value =
                (vec8f)((wins & (vec8i)v) | (~wins & (vec8i)best.value));
            best.place = (wins & place) | (~wins & best.place);
        }
    return best;
}

/* Add eight channels' gradients to the values that were the largest; din begins at the
 * first of these channels. */
SIMD_BODY void give_back(const struct layer *l, float *din,
                         const struct window *w, const vec8i *place,
                         const vec8f *dout)
{
    int at = 0;

    for (int y = w->y0; y < w->y1; y++)
        for (int x = w->x0; x < w->x1; x++, at++)
            *(vec8f *)(din + pixel_at(l, y, x)) +=
                (vec8f)((vec8i)*dout & (*place == at));
}

/* The last eight of n >= 8 channels may overlap those before. */
SIMD_BODY void window_forward_body(const struct layer *l, const float *in,
                                   const struct window *w, float *out)
{
    int n = l->in.channels;

    for (int c = 0; c < n; c += SIMD_WIDTH) {
        int from = at_most(c, n - SIMD_WIDTH);

        *(vec8f *)(out + from) = best_of(l, in, w, from).value;
    }
}

/* The last eight channels may overlap the eight before: channels that were handled
 * already get no second gradient.
 */
SIMD_BODY void window_backward_body(const struct layer *l, const float *in,
                                    const struct window *w, const float *dout,
                                    float *din)
{
    const vec8i lane = {0, 1, 2, 3, 4, 5, 6, 7};
    int n = l->in.channels;

    for (int c = 0; c < n; c += SIMD_WIDTH) {
        int from = at_most(c, n - SIMD_WIDTH);
        vec8i is_new = lane >= c - from;
        vec8f gradient = (vec8f)(*(const vec8i *)(dout + from) & is_new);
        struct best best = best_of(l, in, w, from);

        give_back(l, din + from, w, &best.place, &gradient);
    }
}

/* ---- fewer channels than that ---- */

/* Return the place of the largest of a channel's values in the window. */
static size_t winner(const struct layer *l, const float *in,
                     const struct window *w, int c)
{
    size_t best = pixel_at(l, w->y0, w->x0) + (size_t)c;

    for (int y = w->y0; y < w->y1; y++)
        for (int x = w->x0; x < w->x1; x++) {
            size_t at = pixel_at(l, y, x) + (size_t)c;

            if (in[at] > in[best] || (isnan(in[at]) && !isnan(in[best])))
                best = at;
        }
    return best;
}

/* ---- maps ---- */

SIMD_BODY void map_forward_body(const struct layer *l, const float *in,
                                float *out)
{
    for (int y = 0; y < l->out.height; y++)
        for (int x = 0; x < l->out.width; x++, out += l->in.channels) {
            struct window w = window_at(l, y, x);

            if (l->in.channels >= SIMD_WIDTH)
                window_forward_body(l, in, &w, out);
            else
                for (int c = 0; c < l->in.channels; c++)
                    out[c] = in[winner(l, in, &w, c)];
        }
}
SIMD_KERNEL(map_forward, (const struct layer *l, const float *in, float *out),
            (l, in, out))

SIMD_BODY void map_backward_body(const struct layer *l, const float *in,
                                 const float *dout, float *din)
{
    for (int y = 0; y < l->out.height; y++)
        for (int x = 0; x < l->out.width; x++, dout += l->in.channels) {
            struct window w = window_at(l, y, x);

            if (l->in.channels >= SIMD_WIDTH)
                window_backward_body(l, in, &w, dout, din);
            else
                for (int c = 0; c < l->in.channels; c++)
                    din[winner(l, in, &w, c)] += dout[c];
        }
}
SIMD_KERNEL(map_backward,
            (const struct layer *l, const float *in, const float *dout,
             float *din),
            (l, in, dout, din))

static int any_forward(struct layer *l, const struct layer_io *io,
                       const struct pass *pass)
{
    (void)pass;
    for (int i = 0; i < l->chunk; i++)
        map_forward(l, io->in + (size_t)i * shape_len(&l->in),
                    io->out + (size_t)i * shape_len(&l->out));
    if (l->spec.relu)
        layer__relu(io->out, (size_t)l->chunk * shape_len(&l->out));
    return 0;
}

static int any_backward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t len = shape_len(&l->in), out_len = shape_len(&l->out);

    (void)pass;
    if (!io->din)
        return 0;
    if (l->spec.relu)
        layer__relu_back(io->out, io->dout, (size_t)l->chunk * out_len);
    memset(io->din, 0, (size_t)l->chunk * len * sizeof(float));
    for (int i = 0; i < l->chunk; i++)
        map_backward(l, io->in + (size_t)i * len,
                     io->dout + (size_t)i * out_len, io->din + (size_t)i * len);
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
