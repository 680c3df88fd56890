/* SPDX-License-Identifier: BSD-3-Clause */
/* span.cuh - what the kernels are made of: buffers, elements, and how threads share them.
 *
 * Elements are read and written one by one or N side by side, which is one access of 16
 * bytes, or a few.  A loop is written once, for any N: it gets width<N>.
 *
 * Without nvcc this is compiled for the host, by tests/fake_cuda/cuda_shim.h.
 */
#ifndef COLL_TRAINER_CUDA_SPAN_CUH
#define COLL_TRAINER_CUDA_SPAN_CUH

#ifdef __CUDACC__
#define NUMBER static __device__ __forceinline__
#define RNG_FUNCTION static __device__ __forceinline__
#endif
#include "lib/type/half.h"
#include "trainer/cuda/kernels.h"
#include "trainer/rng.h"

#define DEVICE static __device__ __forceinline__
#define METHOD __device__ __forceinline__

namespace train
{
/* ---- elements ---------------------------------------------------------------- */

struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE float widen(bf16 x) { return bf16_widen(x.bits); }

DEVICE void narrow(float x, float &to) { to = x; }
DEVICE void narrow(double x, double &to) { to = x; }

#ifdef __CUDACC__
DEVICE float widen(f16 x)
{
    float wide;

    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

DEVICE void narrow(float x, bf16 &to)
{
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}

DEVICE void narrow(float x, f16 &to)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}
#else
DEVICE float widen(f16 x) { return f16_widen(x.bits); }
DEVICE void narrow(float x, bf16 &to) { to.bits = bf16_narrow(x); }
DEVICE void narrow(float x, f16 &to) { to.bits = f16_narrow(x); }
#endif

DEVICE bool is_nan(float x) { return x != x; }

/* NaN stays. */
DEVICE float relu_of(float x) { return x <= 0 ? 0 : x; }

/* ---- buffers ----------------------------------------------------------------- */

/* struct train_span, with the elements' type. */
template <typename T> struct span {
    uint64_t at, len;

    METHOD size_t count() const { return len / sizeof(T); }
    METHOD T *items() const { return (T *)at; }
};

/* N elements that lie side by side. */
template <typename T, int N> struct alignas(N == 1 ? sizeof(T) : 16) lot {
    T item[N];
};

/* As many as fill 16 bytes. */
template <typename T> constexpr int wide = 16 / (int)sizeof(T);

/* Read N elements, wider: as float, or double. */
template <int N, typename T> DEVICE auto load(const T *at)
{
    lot<T, N> raw = *(const lot<T, N> *)at;
    lot<decltype(widen(raw.item[0])), N> x;

#pragma unroll
    for (int i = 0; i < N; i++)
        x.item[i] = widen(raw.item[i]);
    return x;
}

/* The same from any address, for what is read once. */
template <int N> DEVICE lot<float, N> load_any(const float *at)
{
    lot<float, N> x;

#pragma unroll
    for (int i = 0; i < N; i++)
        x.item[i] = at[i];
    return x;
}

template <typename T, typename A, int N>
DEVICE void store(T *at, const lot<A, N> &x)
{
    lot<T, N> raw;

#pragma unroll
    for (int i = 0; i < N; i++)
        narrow(x.item[i], raw.item[i]);
    *(lot<T, N> *)at = raw;
}

/* x[i] = f(x[i], others[i]...) */
template <typename A, int N, typename F, typename... B>
DEVICE void change(lot<A, N> &x, F f, const lot<B, N> &...others)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        x.item[i] = f(x.item[i], others.item[i]...);
}

/* May elements be read side by side, those of absent ones apart? */
template <typename... S> DEVICE bool are_wide(S... spans)
{
    return ((!spans.len || spans.at % 16 == 0) && ...);
}

/* ---- threads ------------------------------------------------------------------- */

DEVICE uint32_t thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE uint32_t n_threads() { return gridDim.x * blockDim.x; }

/* What a loop is told: how many elements it is to take at a time. */
template <int N> struct width {
    static const int n = N;
};

/* Divide n elements: f(first, width<N>) for N elements from `first` on, `most` at a time
 * where is_wide says so, else and at the end one. */
template <int most, typename F> DEVICE void each(size_t n, bool is_wide, F f)
{
    size_t whole = is_wide ? n / most : 0;

    for (size_t i = thread(); i < whole; i += n_threads())
        f(i * most, width<most>());
    for (size_t i = whole * most + thread(); i < n; i += n_threads())
        f(i, width<1>());
}

/* Where a thread begins among rows, and which it takes. */
struct rows_of {
    uint32_t channel; /* the first of N */
    size_t first, step;
};

/* Divide rows of `channels` so that a thread has the same channels in all its rows, and
 * threads side by side are so in memory: f(rows, width<N>), N channels at a time. */
template <int N, typename F> DEVICE void each_column(uint32_t channels, F f)
{
    uint32_t columns = channels / N, at_once = n_threads() / columns;
    uint32_t first = thread() / columns, step = at_once ? at_once : 1;

    if (first >= step) /* too few are left for a row */
        return;
    for (uint32_t c = thread() % columns; c < columns; c += n_threads())
        f(rows_of{c * N, first, step}, width<N>());
}

template <int most, typename F>
DEVICE void each_column(uint32_t channels, bool is_wide, F f)
{
    if (is_wide && channels % most == 0)
        each_column<most>(channels, f);
    else
        each_column<1>(channels, f);
}

/* Take every n-th of `all` places, from `first` on and in their order: use(read(place)).
 * What is read is asked for in fours, so that memory is not waited for each time. */
template <typename R, typename F>
DEVICE void each_nth(size_t first, size_t n, size_t all, R read, F use)
{
    size_t at = first;

    for (; at + 3 * n < all; at += 4 * n) {
        auto a = read(at), b = read(at + n);
        auto c = read(at + 2 * n), d = read(at + 3 * n);

        use(a), use(b), use(c), use(d);
    }
    for (; at < all; at += n)
        use(read(at));
}
} // namespace train

#endif
