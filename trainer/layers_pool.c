/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_pool.c - the largest value of each 2 x 2 window, and relu.
 *
 * `in` may have channels in blocks, as convolutions write them; `out` is always in
 * plain height, width, channel order.  The backward pass finds the largest value
 * again by comparing with `out` (the first one, if several are equal), so that
 * nothing is stored.  It may write its gradients over `in`, since each value is
 * read just before.  The largest value of a window with a NaN is NaN, so that the
 * loss shows it.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/simd.h"

/* One row of windows in one block of channels. */
struct row {
    int width;     /* windows */
    int block;     /* channels side by side, a multiple of 8 */
    size_t in_row; /* floats from an input row to the next */
    size_t out_pixel;
    int relu;
};

static int pool_shape(struct layer *l)
{
    l->out = (struct shape){l->in.channels, l->in.height / 2, l->in.width / 2,
                            l->in.channels};
    if (l->spec.kernel != 2 || layer_stride(l) != 2 || l->spec.pad ||
        l->in.height % 2 || l->in.width % 2 || l->in.block % SIMD_WIDTH)
        return train_refuse("layer %d: maps of %d x %d cannot be cut into "
                            "windows of 2 x 2",
                            l->index, l->in.height, l->in.width);
    return 0;
}

static inline __attribute__((always_inline)) const vec8f *at(const float *p)
{
    return (const vec8f *)p;
}

/* The larger of two values; NaN if one is NaN. */
#define vec8f_is_first(a, b) (((a) >= (b)) | ((a) != (a)))
#define vec8f_pick(first, a, b)                                                \
    ((vec8f)(((first) & (vec8i)(a)) | (~(first) & (vec8i)(b))))
#define vec8f_max(a, b) vec8f_pick(vec8f_is_first(a, b), a, b)

SIMD_BODY void forward_body(const float *in, float *out, const struct row *r)
{
    for (int x = 0; x < r->width; x++)
        for (int c = 0; c < r->block; c += SIMD_WIDTH) {
            const float *p = in + 2 * x * r->block + c;
            vec8f a = *at(p), b = *at(p + r->block);
            vec8f d = *at(p + r->in_row), e = *at(p + r->in_row + r->block);

            a = vec8f_max(a, b);
            d = vec8f_max(d, e);
            a = vec8f_max(a, d);
            if (r->relu)
                a = (vec8f)((vec8i)a & ~(a <= 0.0f)); /* NaN stays */
            *(vec8f *)(out + (size_t)x * r->out_pixel + c) = a;
        }
}

SIMD_KERNEL(forward, (const float *in, float *out, const struct row *r),
            (in, out, r))

SIMD_BODY void backward_body(const float *in, const float *out,
                             const float *dout, float *din,
                             const struct row *r)
{
    const size_t corners[4] = {0, (size_t)r->block, r->in_row,
                               r->in_row + (size_t)r->block};

    for (int x = 0; x < r->width; x++)
        for (int c = 0; c < r->block; c += SIMD_WIDTH) {
            size_t from = (size_t)x * r->out_pixel + (size_t)c;
            size_t to = 2 * (size_t)x * (size_t)r->block + (size_t)c;
            vec8f top = *at(out + from), d = *at(dout + from);
            vec8i open = r->relu ? (vec8i)(top > 0.0f) : (vec8i)(top == top);

            for (int k = 0; k < 4; k++) {
                vec8i wins = (*at(in + to + corners[k]) == top) & open;

                *(vec8f *)(din + to + corners[k]) = (vec8f)((vec8i)d & wins);
                open &= ~wins;
            }
        }
}

SIMD_KERNEL(backward,
            (const float *in, const float *out, const float *dout, float *din,
             const struct row *r),
            (in, out, dout, din, r))

static struct row row_of(const struct layer *l)
{
    return (struct row){
        .width = l->out.width,
        .block = l->in.block,
        .in_row = (size_t)l->in.width * (size_t)l->in.block,
        .out_pixel = (size_t)l->out.channels,
        .relu = l->spec.relu,
    };
}

/* Return where row y of windows begins in block b of an image. */
static size_t in_start(const struct layer *l, int b, int y)
{
    return ((size_t)b * (size_t)l->in.height + 2 * (size_t)y) *
           (size_t)l->in.width * (size_t)l->in.block;
}

static size_t out_start(const struct layer *l, int b, int y)
{
    return (size_t)y * (size_t)l->out.width * (size_t)l->out.channels +
           (size_t)b * (size_t)l->in.block;
}

static int pool_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t in_len = shape_len(&l->in), out_len = shape_len(&l->out);
    struct row row = row_of(l);

    (void)pass;
    for (size_t i = 0; i < (size_t)l->chunk; i++)
        for (int b = 0; b < l->in.channels / l->in.block; b++)
            for (int y = 0; y < l->out.height; y++)
                forward(io->in + i * in_len + in_start(l, b, y),
                        io->out + i * out_len + out_start(l, b, y), &row);
    return 0;
}

static int pool_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t in_len = shape_len(&l->in), out_len = shape_len(&l->out);
    struct row row = row_of(l);

    (void)pass;
    for (size_t i = 0; i < (size_t)l->chunk; i++)
        for (int b = 0; b < l->in.channels / l->in.block; b++)
            for (int y = 0; y < l->out.height; y++) {
                size_t in = i * in_len + in_start(l, b, y);
                size_t out = i * out_len + out_start(l, b, y);

                backward(io->in + in, io->out + out, io->dout + out,
                         io->din + in, &row);
            }
    return 0;
}

const struct layer_ops layer_pool = {
    .name = "pool",
    .may_overwrite = 1,
    .reads_out = 1,
    .shape = pool_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = pool_forward,
    .backward = pool_backward,
};
