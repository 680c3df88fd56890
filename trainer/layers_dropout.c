/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_dropout.c - in training, drop a part of the values and scale the rest
 * so that the mean stays the same.
 *
 * Whether value j of an image is dropped depends only on the step's key, the
 * layer, the image's place in the global batch, and j.  So the backward pass
 * computes it again instead of storing it, and it does not depend on how the
 * batch is divided among the ranks.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/rng.h"
#include "trainer/simd.h"

#include <string.h>

/* One image's mask. */
struct mask {
    uint32_t key, salt;
    uint32_t first; /* the first value's place in the image */
    uint32_t floor; /* a value stays if its random number is at least this */
    float scale;
};

static int dropout_shape(struct layer *l)
{
    l->out = l->in;
    if (!(l->spec.rate >= 0 && l->spec.rate < 1) ||
        (l->spec.of_maps && l->in.block != l->in.channels))
        return train_fail("layer %d: cannot drop a part %g of %zu values",
                          l->index, (double)l->spec.rate, shape_len(&l->in));
    return 0;
}

/* The finishing steps of MurmurHash3 (A. Appleby, public domain) spread the
 * counter over 32 bits, eight at a time. */
SIMD_BODY void apply_body(const float *in, float *out, size_t len,
                          const struct mask *m)
{
    vec8u i = (vec8u){0, 1, 2, 3, 4, 5, 6, 7} + m->first;

    for (size_t at = 0; at < len; at += SIMD_WIDTH, i += SIMD_WIDTH) {
        vec8u h = (i * 0x9e3779b9u) ^ m->key;
        vec8f kept = *(const vec8f *)(in + at) * m->scale;

        h = (h ^ h >> 16) * 0x85ebca6bu;
        h = (h ^ h >> 13) * 0xc2b2ae35u;
        h ^= h >> 16;
        h += m->salt;
        *(vec8f *)(out + at) = (vec8f)((vec8u)kept & (vec8u)(h >= m->floor));
    }
}

SIMD_KERNEL(apply,
            (const float *in, float *out, size_t len, const struct mask *m),
            (in, out, len, m))

/* Apply dropout to any number of values: the last ones, which do not fill a vector, are
 * copied to a vector of their own. */
static void apply_image(const float *in, float *out, size_t len,
                        struct mask *mask)
{
    size_t whole = len / SIMD_WIDTH * SIMD_WIDTH;
    float last[SIMD_WIDTH] = {0};

    mask->first = 0;
    apply(in, out, whole, mask);
    if (whole == len)
        return;
    mask->first = (uint32_t)whole;
    memcpy(last, in + whole, (len - whole) * sizeof(float));
    apply(last, last, SIMD_WIDTH, mask);
    memcpy(out + whole, last, (len - whole) * sizeof(float));
}

static void apply_all(const struct layer *l, const float *in, float *out,
                      const struct pass *pass)
{
    uint64_t key = rng_key(pass->key, (uint64_t)l->index);
    size_t len = shape_len(&l->in);

    for (size_t i = 0; i < (size_t)l->chunk; i++) {
        uint64_t bits = rng_bits(key, pass->first + i);
        struct mask mask = {
            .key = (uint32_t)bits,
            .salt = (uint32_t)(bits >> 32),
            .floor = (uint32_t)((double)l->spec.rate * 0x1p32),
            .scale = 1 / (1 - l->spec.rate),
        };

        apply_image(in + i * len, out + i * len, len, &mask);
    }
}

/* Drop whole maps, in plain order. */
static void apply_maps(const struct layer *l, const float *in, float *out,
                       const struct pass *pass)
{
    uint64_t key = rng_key(pass->key, (uint64_t)l->index);
    size_t len = shape_len(&l->in), n = (size_t)l->in.channels;

    for (size_t i = 0; i < (size_t)l->chunk; i++) {
        uint64_t bits = rng_key(key, pass->first + i);

        for (size_t c = 0; c < n; c++) {
            float scale =
                rng_unit(bits, c) < l->spec.rate ? 0 : 1 / (1 - l->spec.rate);

            for (size_t at = i * len + c; at < (i + 1) * len; at += n)
                out[at] = in[at] * scale;
        }
    }
}

/* Both directions: each value is scaled by a number that does not depend on it,
 * so gradients are scaled by the same. */
static int dropout_pass(const struct layer *l, const float *from, float *to,
                        const struct pass *pass)
{
    if (pass->is_training && !pass->keeps_all)
        (l->spec.of_maps ? apply_maps : apply_all)(l, from, to, pass);
    else
        memmove(to, from, (size_t)l->chunk * shape_len(&l->in) * sizeof(*to));
    return 0;
}

static int dropout_forward(struct layer *l, const struct layer_io *io,
                           const struct pass *pass)
{
    return dropout_pass(l, io->in, io->out, pass);
}

static int dropout_backward(struct layer *l, const struct layer_io *io,
                            const struct pass *pass)
{
    return dropout_pass(l, io->dout, io->din, pass);
}

const struct layer_ops layer_dropout = {
    .name = "dropout",
    .may_overwrite = 1, /* backward does not read in */
    .reads_out = 0,
    .shape = dropout_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = dropout_forward,
    .backward = dropout_backward,
};
