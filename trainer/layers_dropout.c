/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_dropout.c - in training, drop a part of the values and scale the rest
 * so that the mean stays.
 *
 * Whether value j of an image is dropped is a function of the step's key, the
 * layer, the image's place in the global batch, and j.  So backward computes it
 * again instead of storing it, and how the batch is cut among ranks changes
 * nothing.
 */
#include "trainer/error.h"
#include "trainer/layers.h"
#include "trainer/rng.h"
#include "trainer/simd.h"

#include <string.h>

/* One image's mask. */
struct mask {
    uint32_t key, salt;
    uint32_t floor; /* a value stays when its random number is not below */
    float scale;
};

static int dropout_shape(struct layer *l)
{
    l->out = l->in;
    if (!(l->spec.rate >= 0 && l->spec.rate < 1) ||
        shape_len(&l->in) % SIMD_WIDTH)
        return train_fail("layer %d: cannot drop a part %g of %zu values",
                          l->index, (double)l->spec.rate, shape_len(&l->in));
    return 0;
}

/* The finishing steps of MurmurHash3 (A. Appleby, public domain) spread the
 * counter over 32 bits, eight at a time. */
SIMD_BODY void apply_body(const float *in, float *out, size_t len,
                          const struct mask *m)
{
    vec8u i = {0, 1, 2, 3, 4, 5, 6, 7};

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

static void apply_all(const struct layer *l, const float *in, float *out,
                      const struct pass *pass)
{
    uint64_t key = rng_key(pass->key, (uint64_t)l->index);
    size_t len = shape_len(&l->in);

    for (size_t i = 0; i < (size_t)l->chunk; i++) {
        uint64_t bits = rng_bits(key, pass->first + i);
        struct mask mask = {(uint32_t)bits, (uint32_t)(bits >> 32),
                            (uint32_t)((double)l->spec.rate * 0x1p32),
                            1 / (1 - l->spec.rate)};

        apply(in + i * len, out + i * len, len, &mask);
    }
}

/* What the layer does, either way: it scales each value by a number that does
 * not depend on it, so slopes take the same way back. */
static int dropout_pass(const struct layer *l, const float *from, float *to,
                        const struct pass *pass)
{
    if (pass->is_training)
        apply_all(l, from, to, pass);
    else
        memcpy(to, from, (size_t)l->chunk * shape_len(&l->in) * sizeof(*to));
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
