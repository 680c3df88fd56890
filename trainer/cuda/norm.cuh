/* SPDX-License-Identifier: BSD-3-Clause */
/* norm.cuh - batch normalization, an addition, and relu, as layers_norm.c has them;
 * kernels.h says in which order these run. */
#ifndef COLL_TRAINER_CUDA_NORM_CUH
#define COLL_TRAINER_CUDA_NORM_CUH

#include "trainer/cuda/span.cuh"
#include "trainer/layers.h"

#include <math.h>

namespace train
{
/* The arrays of a layer's state. */
template <typename F> struct norm_state {
    uint32_t channels;
    F *mean, *root, *a, *b, *c;
};

template <typename F> DEVICE norm_state<F> norm_arrays(span<F> state)
{
    size_t n = state.count() / TRAIN_CUDA_NORM_ARRAYS;
    F *at = state.items();

    return {(uint32_t)n, at, at + n, at + 2 * n, at + 3 * n, at + 4 * n};
}

/* Return the sum of every n-th of the partial sums, from the c-th on. */
DEVICE double whole_sum(span<const float> partial, size_t c, size_t n)
{
    double sum = 0;

    each_nth(
        c, n, partial.count(), [=](size_t at) { return partial.items()[at]; },
        [&](float x) { sum += (double)x; });
    return sum;
}

DEVICE void norm_mean(span<const float> partial, span<float> state,
                      uint64_t rows)
{
    norm_state<float> s = norm_arrays(state);

    for (uint32_t c = thread(); c < s.channels; c += n_threads())
        s.mean[c] = (float)(whole_sum(partial, c, s.channels) / (double)rows);
}

template <int N, typename T>
DEVICE void add_squares(span<const T> in, span<float> partial,
                        const norm_state<const float> &s)
{
    size_t n = partial.count();

    for (size_t i = thread(); i < n / N; i += n_threads()) {
        lot<float, N> mean = load_any<N>(s.mean + i * N % s.channels);
        lot<float, N> sum = {};

        each_nth(
            i * N, n, in.count(),
            [=](size_t at) { return load<N>(in.items() + at); },
            [&](const auto &x) {
                change(
                    sum,
                    [](float t, float v, float m) {
                        return t + (v - m) * (v - m);
                    },
                    x, mean);
            });
        store(partial.items() + i * N, sum);
    }
}

template <typename T>
DEVICE void norm_squares(span<const T> in, span<float> partial,
                         span<const float> state)
{
    norm_state<const float> s = norm_arrays(state);

    if (are_wide(in, partial) && s.channels % wide<T> == 0)
        add_squares<wide<T>>(in, partial, s);
    else
        add_squares<1>(in, partial, s);
}

/* Set a channel's mean and root from the batch, and move the running statistics. */
DEVICE void take_batch(const norm_state<float> &s, uint32_t c, double variance,
                       double rows, float *running)
{
    double unbiased = rows > 1 ? rows / (rows - 1) : 1;
    float *mean = running + c, *square = mean + s.channels;

    s.root[c] = (float)(1 / sqrt(variance + NORM_EPSILON));
    *mean += NORM_MOMENTUM * (s.mean[c] - *mean);
    *square += NORM_MOMENTUM * ((float)(variance * unbiased) - *square);
}

DEVICE void norm_finish(span<const float> partial, span<float> state,
                        span<float> running, span<const float> weights,
                        span<const float> biases, uint64_t rows)
{
    norm_state<float> s = norm_arrays(state);

    for (uint32_t c = thread(); c < s.channels; c += n_threads()) {
        if (partial.len) {
            take_batch(s, c, whole_sum(partial, c, s.channels) / (double)rows,
                       (double)rows, running.items());
        } else {
            double variance = (double)running.items()[s.channels + c];

            s.mean[c] = running.items()[c];
            s.root[c] = (float)(1 / sqrt(variance + NORM_EPSILON));
        }
        s.a[c] = weights.items()[c] * s.root[c];
        s.b[c] = biases.items()[c] - s.mean[c] * s.a[c];
    }
}

template <typename T>
DEVICE void norm_apply(span<const T> in, span<const T> plus, span<T> out,
                       span<const float> state, uint32_t has_relu)
{
    norm_state<const float> s = norm_arrays(state);
    size_t n = out.count() / s.channels;

    each_column<wide<T>>(
        s.channels, are_wide(in, plus, out), [=](rows_of rows, auto w) {
            auto a = load_any<w.n>(s.a + rows.channel);
            auto b = load_any<w.n>(s.b + rows.channel);

            for (size_t row = rows.first; row < n; row += rows.step) {
                size_t at = row * s.channels + rows.channel;
                auto x = load<w.n>(in.items() + at);

                change(
                    x, [](float v, float f, float g) { return v * f + g; }, a,
                    b);
                if (plus.len)
                    change(
                        x, [](float v, float p) { return v + p; },
                        load<w.n>(plus.items() + at));
                if (has_relu)
                    change(x, [](float v) { return relu_of(v); });
                store(out.items() + at, x);
            }
        });
}

/* The buffers of a backward pass. */
template <typename T> struct norm_gradients {
    span<const T> in, out;
    span<T> dout, dplus;
    size_t counted; /* values */
};

/* Read N gradients, behind the relu, and write them where they are wanted. */
template <int N, typename T>
DEVICE lot<float, N> take_gradient(const norm_gradients<T> &g, size_t at)
{
    lot<float, N> d = load<N>(g.dout.items() + at);

    if (g.out.len) {
        change(
            d, [](float x, float o) { return o > 0 ? x : 0; },
            load<N>(g.out.items() + at));
        store(g.dout.items() + at, d);
    }
    if (g.dplus.len)
        store(g.dplus.items() + at, d);
    return d;
}

template <int N, typename T>
DEVICE void add_products(const norm_gradients<T> &g, span<float> partial,
                         const norm_state<const float> &s)
{
    size_t n = partial.count() / 2;

    for (size_t i = thread(); i < n / N; i += n_threads()) {
        size_t slice = i * N / s.channels, c = i * N % s.channels;
        lot<float, N> mean = load_any<N>(s.mean + c), sum = {}, product = {};
        float *to = partial.items() + 2 * slice * s.channels + c;

        for (size_t at = i * N; at < g.dout.count(); at += n) {
            lot<float, N> x = load<N>(g.in.items() + at);
            lot<float, N> d = take_gradient<N>(g, at);

            if (at >= g.counted)
                continue;
            change(
                sum, [](float t, float y) { return t + y; }, d);
            change(
                product,
                [](float t, float y, float v, float m) {
                    return t + y * (v - m);
                },
                d, x, mean);
        }
        store(to, sum);
        store(to + s.channels, product);
    }
}

template <typename T>
DEVICE void norm_products(span<const T> in, span<const T> out, span<T> dout,
                          span<T> dplus, span<float> partial,
                          span<const float> state, uint64_t rows)
{
    norm_state<const float> s = norm_arrays(state);
    norm_gradients<T> g = {in, out, dout, dplus, (size_t)rows * s.channels};

    if (are_wide(in, out, dout, dplus, partial) && s.channels % wide<T> == 0)
        add_products<wide<T>>(g, partial, s);
    else
        add_products<1>(g, partial, s);
}

/* As find_factors() in layers_norm.c, which has the formulas. */
DEVICE void norm_factors(span<const float> partial, span<float> state,
                         span<const float> weights, span<float> dweights,
                         span<float> dbiases, uint64_t rows,
                         uint32_t is_training)
{
    norm_state<float> s = norm_arrays(state);
    size_t n = 2 * (size_t)s.channels;
    double count = (double)rows;

    for (uint32_t c = thread(); c < s.channels; c += n_threads()) {
        double root = (double)s.root[c];
        double a = (double)weights.items()[c] * root;
        double dbias = whole_sum(partial, c, n);
        double dweight = whole_sum(partial, s.channels + c, n) * root;

        dbiases.items()[c] += (float)dbias;
        dweights.items()[c] += (float)dweight;
        s.a[c] = (float)a;
        s.b[c] = is_training ? (float)(-a * root * dweight / count) : 0;
        s.c[c] = is_training ? (float)(-a * dbias / count) : 0;
    }
}

template <typename T>
DEVICE void norm_back(span<const T> in, span<const T> dout, span<T> din,
                      span<const float> state, uint64_t counted)
{
    norm_state<const float> s = norm_arrays(state);
    size_t n = din.count() / s.channels;

    each_column<wide<T>>(
        s.channels, are_wide(in, dout, din), [=](rows_of rows, auto w) {
            auto mean = load_any<w.n>(s.mean + rows.channel);
            auto a = load_any<w.n>(s.a + rows.channel);
            auto b = load_any<w.n>(s.b + rows.channel);
            auto c = load_any<w.n>(s.c + rows.channel);

            for (size_t row = rows.first; row < n; row += rows.step) {
                size_t at = row * s.channels + rows.channel;
                lot<float, w.n> d = {};

                if (row < counted) {
                    auto x = load<w.n>(in.items() + at);

                    d = load<w.n>(dout.items() + at);
                    change(
                        x,
                        [](float v, float m, float f) { return f * (v - m); },
                        mean, b);
                    change(
                        d,
                        [](float g, float f, float y, float h) {
                            return f * g + y + h;
                        },
                        a, x, c);
                }
                store(din.items() + at, d);
            }
        });
}
} // namespace train

#endif
