/* SPDX-License-Identifier: BSD-3-Clause */
/* vector.cuh - whole arrays: added, clipped, packed for the wire. */
#ifndef COLL_TRAINER_CUDA_VECTOR_CUH
#define COLL_TRAINER_CUDA_VECTOR_CUH

#include "trainer/cuda/span.cuh"

#include <math.h>

namespace train
{
template <typename T> DEVICE void add(span<T> to, span<const T> from)
{
    each<wide<T>>(to.count(), are_wide(to, from), [=](size_t at, auto w) {
        auto x = load<w.n>(to.items() + at);

        change(
            x, [](float a, float b) { return a + b; },
            load<w.n>(from.items() + at));
        store(to.items() + at, x);
    });
}

DEVICE void clip(span<float> values, span<const double> squares, double most)
{
    double norm = sqrt(squares.items()[0]);
    float factor = (float)(most / (norm + 1e-6));

    if (norm <= most)
        return;
    each<wide<float>>(values.count(), are_wide(values), [=](size_t at, auto w) {
        auto x = load<w.n>(values.items() + at);

        change(x, [=](float v) { return v * factor; });
        store(values.items() + at, x);
    });
}

DEVICE void spoil(span<const double> score, span<float> values, uint32_t parts)
{
    if (isfinite(score.items()[0]))
        return;
    for (uint32_t r = thread(); r < parts; r += n_threads())
        values.items()[values.count() * (r + 1) / parts - 1] = NAN;
}

/* Copy elements into another type. */
template <typename From, typename To>
DEVICE void convert(span<const From> from, span<To> to)
{
    constexpr int most = wide < From >> wide<To> ? wide<From> : wide<To>;

    each<most>(to.count(), are_wide(from, to), [=](size_t at, auto w) {
        store(to.items() + at, load<w.n>(from.items() + at));
    });
}

template <typename T> DEVICE void pack(span<const float> from, span<T> to)
{
    convert(from, to);
}

template <typename T> DEVICE void unpack(span<const T> from, span<float> to)
{
    convert(from, to);
}
} // namespace train

#endif
