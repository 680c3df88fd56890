/* SPDX-License-Identifier: BSD-3-Clause */
/* bias.cuh - biases and relu behind what a library has computed. */
#ifndef COLL_TRAINER_CUDA_BIAS_CUH
#define COLL_TRAINER_CUDA_BIAS_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
template <typename T> DEVICE void relu(span<T> out)
{
    each<wide<T>>(out.count(), are_wide(out), [=](size_t at, auto w) {
        auto x = load<w.n>(out.items() + at);

        change(x, [](float v) { return relu_of(v); });
        store(out.items() + at, x);
    });
}

template <typename T>
DEVICE void add_biases(span<T> out, span<const float> biases, bool has_relu)
{
    uint32_t channels = (uint32_t)biases.count();

    each_column<wide<T>>(channels, are_wide(out), [=](rows_of rows, auto w) {
        auto bias = load_any<w.n>(biases.items() + rows.channel);
        size_t n = out.count() / channels;

        for (size_t row = rows.first; row < n; row += rows.step) {
            T *at = out.items() + row * channels + rows.channel;
            auto x = load<w.n>(at);

            change(
                x,
                [=](float v, float b) {
                    return has_relu ? relu_of(v + b) : v + b;
                },
                bias);
            store(at, x);
        }
    });
}

template <typename T>
DEVICE void bias_relu(span<T> out, span<const float> biases, uint32_t has_relu)
{
    if (biases.len)
        add_biases(out, biases, has_relu != 0);
    else if (has_relu)
        relu(out);
}

template <typename T> DEVICE void relu_back(span<const T> out, span<T> dout)
{
    each<wide<T>>(dout.count(), are_wide(out, dout), [=](size_t at, auto w) {
        auto d = load<w.n>(dout.items() + at);

        change(
            d, [](float g, float v) { return v > 0 ? g : 0; },
            load<w.n>(out.items() + at));
        store(dout.items() + at, d);
    });
}
} // namespace train

#endif
