/* SPDX-License-Identifier: BSD-3-Clause */
/* device_cpu.c - this machine's processors, by oneDNN and by kernels of this
 * program. */
#include "trainer/device.h"
#include "trainer/onednn.h"
#include "trainer/simd.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* Return 1 if this program's kernel for images of one channel can compute it.
 */
static int is_for_conv_image(const struct layer_spec *s, const struct shape *in)
{
    return in->channels == 1 && s->kernel == 3 && s->stride <= 1 &&
           s->pad == 0 && s->units % SIMD_WIDTH == 0;
}

/* Return 1 if one window covers the whole side of a map, and no other fits. */
static int is_whole(const struct layer_spec *s, int side)
{
    int room = side + 2 * s->pad - s->kernel;

    return side + s->pad <= s->kernel && room >= 0 &&
           room < (s->stride ? s->stride : 1);
}

/* Return 1 if such a window makes the only pixel, so that a matrix product
 * computes it. */
static int is_for_conv_point(const struct layer_spec *s, const struct shape *in)
{
    return in->block == in->channels && is_whole(s, in->height) &&
           is_whole(s, in->width);
}

/* Return 1 if this program's kernel for windows of 2 x 2 can compute it.  It is
 * the only one for maps in blocks of channels. */
static int is_for_pool(const struct layer_spec *s, const struct shape *in)
{
    return in->block != in->channels ||
           (s->kernel == 2 && s->stride % 2 == 0 && s->stride <= 2 &&
            s->pad == 0 && in->height % 2 == 0 && in->width % 2 == 0 &&
            in->block % SIMD_WIDTH == 0);
}

static const struct layer_ops *cpu_layer(const struct layer_spec *spec,
                                         const struct shape *in)
{
    static const struct layer_ops *const kinds[N_LAYER_KINDS] = {
        [LAYER_CONV] = &layer_conv,      [LAYER_MAX_POOL] = &layer_pool_any,
        [LAYER_MEAN_POOL] = &layer_mean, [LAYER_NORM] = &layer_norm,
        [LAYER_DENSE] = &layer_dense,    [LAYER_DROPOUT] = &layer_dropout,
    };

    if (spec->kind == LAYER_CONV && is_for_conv_image(spec, in))
        return &layer_conv_image;
    if (spec->kind == LAYER_CONV && is_for_conv_point(spec, in))
        return &layer_conv_point;
    if (spec->kind == LAYER_MAX_POOL && is_for_pool(spec, in))
        return &layer_pool;
    return kinds[spec->kind];
}

static float *cpu_alloc(size_t n)
{
    void *p;

    if (posix_memalign(&p, ALIGNMENT, n * sizeof(float) + ALIGNMENT))
        return NULL;
    return memset(p, 0, n * sizeof(float));
}

static void cpu_release(float *values) { free(values); }

static void cpu_zero(float *values, size_t n)
{
    memset(values, 0, n * sizeof(*values));
}

SIMD_BODY void add_body(float *to, const float *from, size_t n)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
        *(vec8f *)(to + i) += *(const vec8f *)(from + i);
    for (; i < n; i++)
        to[i] += from[i];
}

SIMD_KERNEL(add, (float *to, const float *from, size_t n), (to, from, n))

const struct device device_cpu = {
    .name = "cpu",
    .init = onednn_init,
    .fini = onednn_fini,
    .block = onednn_block,
    .layer = cpu_layer,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .zero = cpu_zero,
    .add = add,
    .gather = images_gather,
    .loss = softmax_loss,
    .step = optim_move,
};
