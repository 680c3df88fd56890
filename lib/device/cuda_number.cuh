/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_number.cuh - arithmetic on one element on a device.  Results equal those of
 * arith.h on the host bit for bit, except for the bits of a NaN.
 *
 * The device's own instructions convert half-width floats; they round to nearest even.
 * min and max are instructions too: ".NaN" makes the result NaN if either side is, and
 * -0 is less than +0 (PTX ISA, "min").
 *
 * Without nvcc this is compiled for the host, by tests/fake_cuda/cuda_shim.h:
 * then the definitions are those of arith.h and half.h.
 */
#ifndef COLL_LIB_DEVICE_CUDA_NUMBER_CUH
#define COLL_LIB_DEVICE_CUDA_NUMBER_CUH

#ifdef __CUDACC__
#define NUMBER static __device__ __forceinline__
#endif
#include "lib/device/arith.h"

#define DEVICE static __device__ __forceinline__
#define METHOD __device__ __forceinline__

namespace coll
{
#ifdef __CUDACC__
DEVICE float f16_to_f32(uint32_t half)
{
    float x;

    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)half));
    return x;
}

DEVICE uint32_t f16_pair(float low, float high)
{
    uint32_t pair;

    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE uint32_t bf16_pair(float low, float high)
{
    uint32_t pair;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE float least_f32(float a, float b)
{
    float x;

    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
}

DEVICE float most_f32(float a, float b)
{
    float x;

    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
}

DEVICE uint32_t high_product(uint32_t a, uint32_t b) { return __umulhi(a, b); }

DEVICE uint64_t high_product(uint64_t a, uint64_t b)
{
    return __umul64hi(a, b);
}

/* Return the lower half of high:low >> n, for n < 32. */
DEVICE uint32_t shift_in(uint32_t low, uint32_t high, unsigned n)
{
    return __funnelshift_r(low, high, n);
}

/* Return a word made of the third byte of each of four words. */
DEVICE uint32_t third_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0062), __byte_perm(c, d, 0x0062),
                       0x5410);
}

/* Return the least b with 2^b >= n, for n >= 1. */
DEVICE int log_up(int n) { return 32 - __clz(n - 1); }

/* Element-wise minimum and maximum of two or four integers in a word. */
DEVICE uint32_t least_of(uint32_t a, uint32_t b, int8_t)
{
    return __vmins4(a, b);
}
DEVICE uint32_t least_of(uint32_t a, uint32_t b, uint8_t)
{
    return __vminu4(a, b);
}
DEVICE uint32_t least_of(uint32_t a, uint32_t b, int16_t)
{
    return __vmins2(a, b);
}
DEVICE uint32_t least_of(uint32_t a, uint32_t b, uint16_t)
{
    return __vminu2(a, b);
}
DEVICE uint32_t most_of(uint32_t a, uint32_t b, int8_t)
{
    return __vmaxs4(a, b);
}
DEVICE uint32_t most_of(uint32_t a, uint32_t b, uint8_t)
{
    return __vmaxu4(a, b);
}
DEVICE uint32_t most_of(uint32_t a, uint32_t b, int16_t)
{
    return __vmaxs2(a, b);
}
DEVICE uint32_t most_of(uint32_t a, uint32_t b, uint16_t)
{
    return __vmaxu2(a, b);
}

#else
DEVICE float f16_to_f32(uint32_t half) { return f16_widen((uint16_t)half); }

DEVICE uint32_t f16_pair(float low, float high)
{
    return f16_narrow(low) | (uint32_t)f16_narrow(high) << 16;
}

DEVICE uint32_t bf16_pair(float low, float high)
{
    return bf16_narrow(low) | (uint32_t)bf16_narrow(high) << 16;
}

DEVICE float least_f32(float a, float b) { return f32_min(a, b); }
DEVICE float most_f32(float a, float b) { return f32_max(a, b); }

DEVICE uint32_t high_product(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

DEVICE uint64_t high_product(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

DEVICE uint32_t shift_in(uint32_t low, uint32_t high, unsigned n)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> n);
}

DEVICE uint32_t third_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (a >> 16 & 0xff) | (b >> 8 & 0xff00) | (c & 0xff0000) |
           (d & 0xff0000) << 8;
}

DEVICE int log_up(int n) { return n == 1 ? 0 : 32 - __builtin_clz(n - 1); }

template <typename T, bool is_least>
DEVICE uint32_t choose(uint32_t a, uint32_t b)
{
    T x[4 / sizeof(T)], y[4 / sizeof(T)];

    memcpy(x, &a, sizeof(x));
    memcpy(y, &b, sizeof(y));
    for (size_t i = 0; i < 4 / sizeof(T); i++)
        x[i] = (x[i] < y[i]) == is_least ? x[i] : y[i];
    memcpy(&a, x, sizeof(x));
    return a;
}

template <typename T> DEVICE uint32_t least_of(uint32_t a, uint32_t b, T)
{
    return choose<T, true>(a, b);
}

template <typename T> DEVICE uint32_t most_of(uint32_t a, uint32_t b, T)
{
    return choose<T, false>(a, b);
}
#endif

/* ---- types ----------------------------------------------------------------- */

/* The half-width formats: a word holds two of them. */
struct f16 {
    static const uint32_t one = 0x3c00;
    static const int least = F16_LEAST;
    static METHOD float widen(uint32_t half) { return f16_to_f32(half); }
    static METHOD uint32_t pair(float low, float high)
    {
        return f16_pair(low, high);
    }
};

struct bf16 {
    static const uint32_t one = 0x3f80;
    static const int least = BF16_LEAST;
    static METHOD float widen(uint32_t half)
    {
        return bf16_widen((uint16_t)half);
    }
    static METHOD uint32_t pair(float low, float high)
    {
        return bf16_pair(low, high);
    }
};

/* The 8-bit formats: a word holds four of them. */
struct f8e4m3 {
    static const uint32_t one = 0x38;
    static const int least = F8E4M3_LEAST;
    static METHOD float widen(uint32_t bits)
    {
        return f8e4m3_widen((uint8_t)bits);
    }
    static METHOD uint32_t narrow(float x) { return f8e4m3_narrow(x); }
};

struct f8e5m2 {
    static const uint32_t one = 0x3c;
    static const int least = F8E5M2_LEAST;
    static METHOD float widen(uint32_t bits) { return f16_to_f32(bits << 8); }
    static METHOD uint32_t narrow(float x) { return f8e5m2_narrow(x); }
};

DEVICE float least(float a, float b) { return least_f32(a, b); }
DEVICE float most(float a, float b) { return most_f32(a, b); }
DEVICE double least(double a, double b) { return f64_min(a, b); }
DEVICE double most(double a, double b) { return f64_max(a, b); }

template <typename T> DEVICE T least(T a, T b) { return a < b ? a : b; }
template <typename T> DEVICE T most(T a, T b) { return a > b ? a : b; }
} // namespace coll

#endif
