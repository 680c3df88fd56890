/* SPDX-License-Identifier: BSD-3-Clause */
/* device_cpu.c - this machine's processors, by oneDNN and by kernels of this
 * program. */
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/onednn.h"
#include "trainer/simd.h"

#include <math.h>
#include <stdio.h>
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

static size_t cpu_value_size(void) { return sizeof(float); }

static void *cpu_alloc(size_t len)
{
    void *p;

    if (posix_memalign(&p, ALIGNMENT, len + ALIGNMENT))
        return NULL;
    return memset(p, 0, len);
}

static void cpu_copy(void *to, const void *from, size_t len)
{
    if (len) /* else the pointers may be NULL */
        memcpy(to, from, len);
}

static int cpu_read(void *to, const void *from, size_t len)
{
    cpu_copy(to, from, len);
    return 0;
}

static int cpu_read_values(float *to, const void *from, size_t n)
{
    return cpu_read(to, from, n * sizeof(*to));
}

static void cpu_zero(void *at, size_t len) { memset(at, 0, len); }

SIMD_BODY void add_body(float *to, const float *from, size_t n)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
        *(vec8f *)(to + i) += *(const vec8f *)(from + i);
    for (; i < n; i++)
        to[i] += from[i];
}

SIMD_KERNEL(add, (float *to, const float *from, size_t n), (to, from, n))

static void cpu_add_values(void *to, const void *from, size_t n)
{
    add(to, from, n);
}

static void cpu_squares(const float *values, size_t n, double *sum)
{
    for (size_t i = 0; i < n; i++)
        *sum += (double)values[i] * (double)values[i];
}

static void cpu_clip(float *values, size_t n, const double *squares,
                     double most)
{
    double norm = sqrt(*squares);
    float factor = (float)(most / (norm + 1e-6));

    if (norm <= most)
        return;
    for (size_t i = 0; i < n; i++)
        values[i] *= factor;
}

static void cpu_spoil(const struct model_score *score, float *values, size_t n,
                      size_t parts)
{
    if (isfinite(score->loss))
        return;
    for (size_t r = 0; r < parts; r++)
        values[n * (r + 1) / parts - 1] = NAN;
}

static int cpu_libraries(char *text, size_t len)
{
    snprintf(text, len, "%s", onednn_version());
    return 0;
}

static int cpu_probe(char *why, size_t len)
{
    (void)why;
    (void)len;
    return 0;
}

static int cpu_init(const struct device_config *config)
{
    if (config->precision != PRECISION_F32)
        return train_refuse("--precision %s is for GPUs, and --device cpu "
                            "computes in f32; give --device cuda, or leave "
                            "--precision out",
                            precision_name(config->precision));
    return onednn_init(config->threads);
}

static void cpu_say(char *text, size_t len) { snprintf(text, len, "%s", ""); }

/* Each function has done its work when it returns. */
static int cpu_well(void) { return 0; }

static void *cpu_exchange(void) { return NULL; }

static void cpu_exchanged(void) {}

static void cpu_mark(int number) { (void)number; }

/* The images are where gather() reads them. */
static int cpu_hold(struct images *images)
{
    (void)images;
    return 0;
}

static void cpu_let_go(struct images *images) { (void)images; }

/* Each function is given the numbers of the step, too. */
static void cpu_begin(const struct device_step *step) { (void)step; }

const struct device device_cpu = {
    .name = "cpu",
    .most_images = 64, /* more are no faster and take more memory */
    .about = {.libraries = cpu_libraries, .probe = cpu_probe, .say = cpu_say},
    .init = cpu_init,
    .fini = onednn_fini,
    .layer = cpu_layer,
    .values = {.block = onednn_block,
               .size = cpu_value_size,
               .read = cpu_read_values,
               .add = cpu_add_values},
    .order = {.well = cpu_well,
              .wait = cpu_well,
              .exchange = cpu_exchange,
              .exchanged = cpu_exchanged,
              .mark = cpu_mark,
              .see = cpu_mark},
    .images = {.hold = cpu_hold, .let_go = cpu_let_go, .gather = images_gather},
    .alloc = cpu_alloc,
    .release = free,
    .write = cpu_copy,
    .read = cpu_read,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .add = add,
    .squares = cpu_squares,
    .clip = cpu_clip,
    .spoil = cpu_spoil,
    .pack = wire_pack,
    .unpack = wire_unpack,
    .begin = cpu_begin,
    .loss = softmax_loss,
    .step = optim_move,
};
