/* SPDX-License-Identifier: BSD-3-Clause */
/* fold.cuh - sums whose bits do not depend on the grid: each place of the result is the sum
 * of every n-th element, in their order. */
#ifndef COLL_TRAINER_CUDA_FOLD_CUH
#define COLL_TRAINER_CUDA_FOLD_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
/* to[i] = (add ? to[i] : 0) + the sum of f(from[i + k n]), N places at a time */
template <int N, typename In, typename Out, typename F>
DEVICE void fold_places(span<const In> from, span<Out> to, bool add, F f)
{
    size_t n = to.count();

    for (size_t i = thread(); i < n / N; i += n_threads()) {
        lot<Out, N> sum = {};

        each_nth(
            i * N, n, from.count(),
            [=](size_t at) { return load<N>(from.items() + at); },
            [&](const auto &x) {
                change(
                    sum, [=](Out s, auto v) { return s + f(v); }, x);
            });
        if (add)
            change(
                sum, [](Out s, Out was) { return was + s; },
                load<N>(to.items() + i * N));
        store(to.items() + i * N, sum);
    }
}

template <typename In, typename Out, typename F>
DEVICE void fold_by(span<const In> from, span<Out> to, bool add, F f)
{
    constexpr int N = wide<In>;

    if (are_wide(from, to) && from.count() % N == 0 && to.count() % N == 0)
        fold_places<N>(from, to, add, f);
    else
        fold_places<1>(from, to, add, f);
}

template <typename In, typename Out>
DEVICE void fold(span<const In> from, span<Out> to, uint32_t add)
{
    fold_by(from, to, add != 0, [](auto x) { return x; });
}

DEVICE void squares(span<const float> from, span<double> to)
{
    fold_by(from, to, false, [](float x) { return (double)x * (double)x; });
}
} // namespace train

#endif
