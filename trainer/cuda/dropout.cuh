/* SPDX-License-Identifier: BSD-3-Clause */
/* dropout.cuh - the masks of layers_dropout.c, bit for bit; both directions alike. */
#ifndef COLL_TRAINER_CUDA_DROPOUT_CUH
#define COLL_TRAINER_CUDA_DROPOUT_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
/* What numbers are drawn for. */
struct draw {
    uint64_t key, first;
};

/* For a layer's masks. */
DEVICE draw draw_of(span<const train_step> step, uint64_t at, uint32_t layer)
{
    return {rng_key(step.items()->dropout, layer), step.items()->first + at};
}

/* Return the random number of value i of an image whose bits are these. */
DEVICE uint32_t dropout_number(uint64_t bits, uint32_t i)
{
    uint32_t h = (i * 0x9e3779b9u) ^ (uint32_t)bits;

    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    return h + (uint32_t)(bits >> 32);
}

template <typename T>
DEVICE void dropout(span<const T> from, span<T> to, draw d, uint32_t values,
                    uint32_t floor, float scale)
{
    size_t images = to.count() / values;

    each_column<wide<T>>(values, are_wide(from, to), [=](rows_of rows, auto w) {
        for (size_t i = rows.first; i < images; i += rows.step) {
            uint64_t bits = rng_bits(d.key, d.first + i);
            size_t at = i * values + rows.channel;
            auto x = load<w.n>(from.items() + at);

#pragma unroll
            for (int k = 0; k < w.n; k++)
                x.item[k] =
                    dropout_number(bits, rows.channel + (uint32_t)k) >= floor
                        ? x.item[k] * scale
                        : 0;
            store(to.items() + at, x);
        }
    });
}

struct map_shape {
    uint32_t channels, pixels;
};

template <typename T>
DEVICE void dropout_maps(span<const T> from, span<T> to, draw d, map_shape s,
                         float rate, float scale)
{
    size_t len = (size_t)s.channels * s.pixels, images = to.count() / len;

    each_column<wide<T>>(
        s.channels, are_wide(from, to), [=](rows_of rows, auto w) {
            for (size_t i = rows.first; i < images; i += rows.step) {
                uint64_t bits = rng_key(d.key, d.first + i);
                lot<float, w.n> factor;

#pragma unroll
                for (int k = 0; k < w.n; k++)
                    factor.item[k] =
                        rng_unit(bits, rows.channel + (uint32_t)k) < rate
                            ? 0
                            : scale;
                for (size_t at = i * len + rows.channel; at < (i + 1) * len;
                     at += s.channels) {
                    auto x = load<w.n>(from.items() + at);

                    change(
                        x, [](float v, float f) { return v * f; }, factor);
                    store(to.items() + at, x);
                }
            }
        });
}
} // namespace train

#endif
