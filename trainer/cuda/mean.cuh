/* SPDX-License-Identifier: BSD-3-Clause */
/* mean.cuh - the mean of each map, as layers_mean.c has it. */
#ifndef COLL_TRAINER_CUDA_MEAN_CUH
#define COLL_TRAINER_CUDA_MEAN_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
/* len: values of an image */
template <typename T>
DEVICE void mean(span<const T> in, span<T> out, uint32_t channels)
{
    size_t images = out.count() / channels, len = in.count() / images;

    each_column<wide<T>>(
        channels, are_wide(in, out), [=](rows_of rows, auto w) {
            for (size_t i = rows.first; i < images; i += rows.step) {
                const T *image = in.items() + i * len + rows.channel;
                lot<float, w.n> sum = {};

                each_nth(
                    0, channels, len,
                    [=](size_t at) { return load<w.n>(image + at); },
                    [&](const auto &x) {
                        change(
                            sum, [](float s, float v) { return s + v; }, x);
                    });
                change(sum, [=](float s) {
                    return s * (float)channels / (float)len;
                });
                store(out.items() + i * channels + rows.channel, sum);
            }
        });
}

template <typename T>
DEVICE void mean_back(span<const T> dout, span<T> din, uint32_t channels)
{
    size_t images = dout.count() / channels, len = din.count() / images;

    each_column<wide<T>>(
        channels, are_wide(dout, din), [=](rows_of rows, auto w) {
            for (size_t i = rows.first; i < images; i += rows.step) {
                T *image = din.items() + i * len + rows.channel;
                auto d = load<w.n>(dout.items() + i * channels + rows.channel);

                change(d, [=](float g) {
                    return g * (float)channels / (float)len;
                });
                for (size_t at = 0; at < len; at += channels)
                    store(image + at, d);
            }
        });
}
} // namespace train

#endif
