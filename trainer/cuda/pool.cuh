/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.cuh - max pooling with any window, as layers_pool_any.c has it; windows may
 * overlap.
 *
 * The backward pass finds the largest value again instead of storing where it was: a value
 * that equals its window's result, and that no earlier one in the window equals.
 */
#ifndef COLL_TRAINER_CUDA_POOL_CUH
#define COLL_TRAINER_CUDA_POOL_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
struct pool_shape {
    uint32_t channels, height, width, kernel, stride, pad;

    METHOD uint32_t windows(uint32_t side) const
    {
        return (side + 2 * pad - kernel) / stride + 1;
    }
};

/* The places from `first` to before `end`, along one side. */
struct places {
    uint32_t first, end;
};

/* Those of a window, without the part in the padding. */
DEVICE places window_at(const pool_shape &s, uint32_t at, uint32_t side)
{
    uint32_t first = at * s.stride, end = first + s.kernel;

    return {first > s.pad ? first - s.pad : 0,
            end < side + s.pad ? end - s.pad : side};
}

/* The windows that cover a place. */
DEVICE places windows_at(const pool_shape &s, uint32_t at, uint32_t side)
{
    uint32_t last = (at + s.pad) / s.stride + 1, n = s.windows(side);
    uint32_t before = at + s.pad + 1; /* as if the map began there */

    return {before > s.kernel ? (before - s.kernel + s.stride - 1) / s.stride
                              : 0,
            last < n ? last : n};
}

/* A row of a map of so many rows and columns. */
struct spot {
    uint32_t image, y, x;
};

DEVICE spot spot_of(uint32_t row, uint32_t height, uint32_t width)
{
    return {row / width / height, row / width % height, row % width};
}

/* Where the channels of a map's pixel begin. */
DEVICE size_t pixel_at(const pool_shape &s, uint32_t image, uint32_t y,
                       uint32_t x)
{
    return (((size_t)image * s.height + y) * s.width + x) * s.channels;
}

template <int N, typename T>
DEVICE lot<float, N> largest(const T *in, const pool_shape &s, spot to)
{
    places ys = window_at(s, to.y, s.height), xs = window_at(s, to.x, s.width);
    lot<float, N> best =
        load<N>(in + pixel_at(s, to.image, ys.first, xs.first));

    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++)
            change(
                best,
                [](float b, float v) {
                    return v > b || (is_nan(v) && !is_nan(b)) ? v : b;
                },
                load<N>(in + pixel_at(s, to.image, y, x)));
    return best;
}

template <typename T>
DEVICE void pool(span<const T> in, span<T> out, pool_shape s, uint32_t has_relu)
{
    uint32_t height = s.windows(s.height), width = s.windows(s.width);
    uint32_t n = (uint32_t)(out.count() / s.channels);

    each_column<wide<T>>(
        s.channels, are_wide(in, out), [=](rows_of rows, auto w) {
            for (size_t row = rows.first; row < n; row += rows.step) {
                auto best = largest<w.n>(in.items() + rows.channel, s,
                                         spot_of((uint32_t)row, height, width));

                if (has_relu)
                    change(best, [](float v) { return relu_of(v); });
                store(out.items() + row * s.channels + rows.channel, best);
            }
        });
}

DEVICE bool is_same(float a, float b)
{
    return a == b || (is_nan(a) && is_nan(b));
}

/* Clear the gradients that go to an earlier value of the window than the one at (y, x). */
template <int N, typename T>
DEVICE void drop_earlier(const T *in, const pool_shape &s, spot at,
                         const places &ys, const places &xs,
                         const lot<float, N> &out, lot<float, N> &d)
{
    for (uint32_t y = ys.first; y <= at.y; y++)
        for (uint32_t x = xs.first; x < (y == at.y ? at.x : xs.end); x++)
            change(
                d,
                [](float g, float o, float v) { return is_same(v, o) ? 0 : g; },
                out, load<N>(in + pixel_at(s, at.image, y, x)));
}

/* Return what comes back from one window, whose result is out and its gradient d, to the
 * value x at a spot. */
template <int N, typename T>
DEVICE lot<float, N> from_window(const T *in, const pool_shape &s, spot at,
                                 spot window, const lot<float, N> &x,
                                 const lot<float, N> &out, lot<float, N> d,
                                 bool has_relu)
{
    bool is_any = false;

#pragma unroll
    for (int i = 0; i < N; i++) {
        bool wins =
            is_same(x.item[i], out.item[i]) && (!has_relu || out.item[i] > 0);

        d.item[i] = wins ? d.item[i] : 0;
        is_any = is_any || wins;
    }
    if (is_any)
        drop_earlier(in, s, at, window_at(s, window.y, s.height),
                     window_at(s, window.x, s.width), out, d);
    return d;
}

template <int N, typename T>
DEVICE lot<float, N> pool_gradient(const T *in, const T *out, const T *dout,
                                   const pool_shape &s, spot at, bool has_relu)
{
    places ys = windows_at(s, at.y, s.height);
    places xs = windows_at(s, at.x, s.width);
    lot<float, N> x = load<N>(in + pixel_at(s, at.image, at.y, at.x));
    lot<float, N> sum = {};

    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t column = xs.first; column < xs.end; column++) {
            size_t to = (((size_t)at.image * s.windows(s.height) + y) *
                             s.windows(s.width) +
                         column) *
                        s.channels;

            change(
                sum, [](float a, float g) { return a + g; },
                from_window(in, s, at, {at.image, y, column}, x,
                            load<N>(out + to), load<N>(dout + to), has_relu));
        }
    return sum;
}

template <typename T>
DEVICE void pool_back(span<const T> in, span<const T> out, span<const T> dout,
                      span<T> din, pool_shape s, uint32_t has_relu)
{
    uint32_t n = (uint32_t)(din.count() / s.channels);

    each_column<wide<T>>(
        s.channels, are_wide(in, out, dout, din), [=](rows_of rows, auto w) {
            uint32_t c = rows.channel;

            for (size_t row = rows.first; row < n; row += rows.step)
                store(din.items() + row * s.channels + c,
                      pool_gradient<w.n>(
                          in.items() + c, out.items() + c, dout.items() + c, s,
                          spot_of((uint32_t)row, s.height, s.width),
                          has_relu != 0));
        });
}
} // namespace train

#endif
