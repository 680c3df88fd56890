/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ops.cuh - operations on words, from which cuda_walk.cuh makes loops.
 *
 * A word is 32 bits with one, two or four elements in it, or 64 bits with one.
 * An operation is a struct:
 *   word        uint32_t or uint64_t
 *   size        bytes of an element
 *   at_once     loads that a thread issues before it needs the first
 *   of(a, b)    a word from two words, or of(a) from one; a single element is in the
 *               lowest bits, and the other bits of the result are not stored
 */
#ifndef COLL_LIB_DEVICE_CUDA_OPS_CUH
#define COLL_LIB_DEVICE_CUDA_OPS_CUH

#include "lib/device/cuda_number.cuh"

#include <math.h>
#include <stddef.h>

#define COLL__FEW_RANKS (1 << 21)

namespace coll
{
/* ---- how elements lie in words ---------------------------------------------- */

template <size_t bytes> struct word_of {
    typedef uint32_t type;
};
template <> struct word_of<8> {
    typedef uint64_t type;
};

template <typename T> struct size_of {
    static const size_t value = sizeof(T);
};
template <> struct size_of<f16> {
    static const size_t value = 2;
};
template <> struct size_of<bf16> {
    static const size_t value = 2;
};
template <> struct size_of<f8e4m3> {
    static const size_t value = 1;
};
template <> struct size_of<f8e5m2> {
    static const size_t value = 1;
};

/* The types' names in cuda_entries.h; the narrow floats are defined above. */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

/* The members that every operation on elements of type T has. */
template <typename T> struct on {
    static const size_t size = size_of<T>::value;
    static const int at_once = 8;
    typedef typename word_of<size_of<T>::value>::type word;
};

/* Lanes: apply f to each element of a word; integers of 1, 2, 4 and 8 bytes. */
template <typename T> struct lanes {
    typedef typename on<T>::word word;
    static const int n = sizeof(T) < 4 ? 4 / sizeof(T) : 1;

    static METHOD T get(word w, int i) { return (T)(w >> 8 * sizeof(T) * i); }
    static METHOD word put(T x, int i)
    {
        return (word)x << 8 * sizeof(T) * i & mask(i);
    }
    static METHOD word mask(int i)
    {
        return n == 1
                   ? ~(word)0
                   : (((word)1 << 8 * sizeof(T) % 32) - 1) << 8 * sizeof(T) * i;
    }
    template <class F> static METHOD word map(word a, word b, F f)
    {
        word out = 0;

#pragma unroll
        for (int i = 0; i < n; i++)
            out |= put(f(get(a, i), get(b, i)), i);
        return out;
    }
};

template <> struct lanes<float> {
    static METHOD float get(uint32_t w, int) { return f32_from(w); }
    template <class F> static METHOD uint32_t map(uint32_t a, uint32_t b, F f)
    {
        return f32_bits(f(f32_from(a), f32_from(b)));
    }
};

template <> struct lanes<double> {
    static METHOD double get(uint64_t w, int) { return f64_from(w); }
    template <class F> static METHOD uint64_t map(uint64_t a, uint64_t b, F f)
    {
        return f64_bits(f(f64_from(a), f64_from(b)));
    }
};

template <class H> struct half_lanes {
    static METHOD float get(uint32_t w, int i) { return H::widen(w >> 16 * i); }
    template <class F> static METHOD uint32_t map(uint32_t a, uint32_t b, F f)
    {
        return H::pair(f(get(a, 0), get(b, 0)), f(get(a, 1), get(b, 1)));
    }
};
template <> struct lanes<f16> : half_lanes<f16> {
};
template <> struct lanes<bf16> : half_lanes<bf16> {
};

template <class Q> struct quarter_lanes {
    static METHOD float get(uint32_t w, int i) { return Q::widen(w >> 8 * i); }
    template <class F> static METHOD uint32_t map(uint32_t a, uint32_t b, F f)
    {
        uint32_t out = 0;

#pragma unroll
        for (int i = 0; i < 4; i++)
            out |= Q::narrow(f(get(a, i), get(b, i))) << 8 * i;
        return out;
    }
};
template <> struct lanes<f8e4m3> : quarter_lanes<f8e4m3> {
};
template <> struct lanes<f8e5m2> : quarter_lanes<f8e5m2> {
};

/* ---- reductions ------------------------------------------------------------- */

struct add {
    template <typename T> METHOD T operator()(T a, T b) const { return a + b; }
};
struct take_product {
    template <typename T> METHOD T operator()(T a, T b) const { return a * b; }
    /* u16 times u16 would be an int, and overflow it */
    METHOD uint16_t operator()(uint16_t a, uint16_t b) const
    {
        return (uint16_t)((uint32_t)a * b);
    }
};
struct take_least {
    template <typename T> METHOD T operator()(T a, T b) const
    {
        return least(a, b);
    }
};
struct take_most {
    template <typename T> METHOD T operator()(T a, T b) const
    {
        return most(a, b);
    }
};

template <typename T, class F> struct by_lanes : on<T> {
    typedef typename on<T>::word word;

    METHOD word of(word a, word b) const { return lanes<T>::map(a, b, F()); }
};

template <typename T> struct sum : by_lanes<T, add> {
};
template <typename T> struct prod : by_lanes<T, take_product> {
};
template <typename T> struct min : by_lanes<T, take_least> {
};
template <typename T> struct max : by_lanes<T, take_most> {
};

/* Add the uppermost bits apart, so that no carry leaves an element. */
template <> struct sum<uint8_t> : on<uint8_t> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const
    {
        const uint32_t low = 0x7f7f7f7f;

        return ((a & low) + (b & low)) ^ ((a ^ b) & ~low);
    }
};
template <> struct sum<uint16_t> : on<uint16_t> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const
    {
        const uint32_t low = 0x7fff7fff;

        return ((a & low) + (b & low)) ^ ((a ^ b) & ~low);
    }
};

/* Small integers have instructions for a whole word. */
template <typename T> struct least_in_word : on<T> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const
    {
        return least_of(a, b, T());
    }
};
template <typename T> struct most_in_word : on<T> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const
    {
        return most_of(a, b, T());
    }
};
template <> struct min<int8_t> : least_in_word<int8_t> {
};
template <> struct min<uint8_t> : least_in_word<uint8_t> {
};
template <> struct min<int16_t> : least_in_word<int16_t> {
};
template <> struct min<uint16_t> : least_in_word<uint16_t> {
};
template <> struct max<int8_t> : most_in_word<int8_t> {
};
template <> struct max<uint8_t> : most_in_word<uint8_t> {
};
template <> struct max<int16_t> : most_in_word<int16_t> {
};
template <> struct max<uint16_t> : most_in_word<uint16_t> {
};

template <typename T> struct band : on<T> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const { return a & b; }
};
template <typename T> struct bor : on<T> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const { return a | b; }
};
template <typename T> struct bxor : on<T> {
    METHOD uint32_t of(uint32_t a, uint32_t b) const { return a ^ b; }
};

/* ---- truth ------------------------------------------------------------------ */

/* truth<T>::of(w): 1 in each element that is true, else 0.  spell(w): turn these
 * bits into the type's numbers 1 and 0. */
template <typename T> struct truth {
    static METHOD T of(T w) { return w != 0; }
    static METHOD T spell(T w) { return w; }
};
template <> struct truth<uint8_t> {
    static METHOD uint32_t of(uint32_t w)
    {
        return (((w & 0x7f7f7f7f) + 0x7f7f7f7f) | w) >> 7 & 0x01010101;
    }
    static METHOD uint32_t spell(uint32_t w) { return w; }
};
template <> struct truth<uint16_t> {
    static METHOD uint32_t of(uint32_t w)
    {
        return (((w & 0x7fff7fff) + 0x7fff7fff) | w) >> 15 & 0x00010001;
    }
    static METHOD uint32_t spell(uint32_t w) { return w; }
};
/* floats: -0 is not true, a NaN is */
template <class H> struct half_truth {
    static METHOD uint32_t of(uint32_t w)
    {
        return ((w & 0x7fff7fff) + 0x7fff7fff) >> 15 & 0x00010001;
    }
    static METHOD uint32_t spell(uint32_t w) { return w * H::one; }
};
template <> struct truth<f16> : half_truth<f16> {
};
template <> struct truth<bf16> : half_truth<bf16> {
};
template <class Q> struct quarter_truth {
    static METHOD uint32_t of(uint32_t w)
    {
        return ((w & 0x7f7f7f7f) + 0x7f7f7f7f) >> 7 & 0x01010101;
    }
    static METHOD uint32_t spell(uint32_t w) { return w * Q::one; }
};
template <> struct truth<f8e4m3> : quarter_truth<f8e4m3> {
};
template <> struct truth<f8e5m2> : quarter_truth<f8e5m2> {
};
template <> struct truth<float> {
    static METHOD uint32_t of(uint32_t w) { return (w & 0x7fffffff) != 0; }
    static METHOD uint32_t spell(uint32_t w) { return w * 0x3f800000; }
};
template <> struct truth<double> {
    static METHOD uint64_t of(uint64_t w) { return w << 1 != 0; }
    static METHOD uint64_t spell(uint64_t w) { return w * 0x3ff0000000000000; }
};

template <typename T> struct land : on<T> {
    typedef typename on<T>::word word;

    METHOD word of(word a, word b) const
    {
        return truth<T>::spell(truth<T>::of(a) & truth<T>::of(b));
    }
};
template <typename T> struct lor : on<T> {
    typedef typename on<T>::word word;

    METHOD word of(word a, word b) const
    {
        return truth<T>::spell(truth<T>::of(a) | truth<T>::of(b));
    }
};
template <typename T> struct lxor : on<T> {
    typedef typename on<T>::word word;

    METHOD word of(word a, word b) const
    {
        return truth<T>::spell(truth<T>::of(a) ^ truth<T>::of(b));
    }
};

/* ---- of one word ------------------------------------------------------------ */

struct same : on<uint8_t> {
    static const int at_once = 6; /* more want more registers than there are */

    METHOD uint32_t of(uint32_t a) const { return a; }
};

/* Multiply by a factor of type T, which is in the lowest bits of `bits`. */
template <typename T> struct multiply : on<T> {
    typedef typename on<T>::word word;
    static const int at_once = 6;

    word factor; /* in every element */

    METHOD explicit multiply(uint64_t bits)
    {
        factor = (word)bits;
        if (on<T>::size == 1)
            factor = (word)((bits & 0xff) * 0x01010101);
        if (on<T>::size == 2)
            factor = (word)((bits & 0xffff) * 0x00010001);
    }
    METHOD word of(word a) const { return prod<T>().of(a, factor); }
};

/* Narrow floats have a factor of type f32. */
struct product {
    float factor;

    METHOD float operator()(float a, float) const { return a * factor; }
};
template <class N> struct narrow_multiply : on<N> {
    static const int at_once = 6;
    product by;

    METHOD explicit narrow_multiply(uint64_t bits)
    {
        by.factor = f32_from((uint32_t)bits);
    }
    METHOD uint32_t of(uint32_t a) const { return lanes<N>::map(a, a, by); }
};
#define NARROW_MULTIPLY(N)                                                     \
    template <> struct multiply<N> : narrow_multiply<N> {                      \
        METHOD explicit multiply(uint64_t bits) : narrow_multiply<N>(bits) {}  \
    };
NARROW_MULTIPLY(f16)
NARROW_MULTIPLY(bf16)
NARROW_MULTIPLY(f8e4m3)
NARROW_MULTIPLY(f8e5m2)

/* Integers divided by n without a division: Granlund and Montgomery, "Division
 * by invariant integers using multiplication", PLDI 1994, figure 4.1.  magic is
 * what coll__cuda_magic(n) returns; W is 32 or 64 bits wide. */
template <typename W> struct divisor {
    W magic;
    int first, then; /* shifts */

    METHOD divisor(int n, uint64_t all)
    {
        int bits = log_up(n);

        magic = (W)(all >> (64 - 8 * sizeof(W))) + 1;
        first = bits > 0;
        then = bits > 0 ? bits - 1 : 0;
    }
    METHOD W of(W a) const
    {
        W t = high_product(magic, a);

        return (t + ((a - t) >> first)) >> then;
    }
};

template <typename T> struct is_signed {
    static const bool value = (T)-1 < (T)0;
};

/* Operations that need more registers load fewer vectors at a time. */
template <typename T> struct few_on : on<T> {
    static const int at_once = 6; /* more want more registers than there are */
};

/* The device's own division takes a slow path, for the whole warp, if any element is zero
 * or near the ends of the range. */
template <typename T> struct division_on : on<T> {
    static const int at_once = 4;
};

template <typename T> struct scale : division_on<T> {
    typedef typename on<T>::word word;

    divisor<word> by;

    METHOD scale(int n, uint64_t magic) : by(n, magic) {}
    METHOD T one(T a) const
    {
        word negative = is_signed<T>::value && a < 0 ? ~(word)0 : 0;
        word amount = ((word)a ^ negative) - negative;

        return (T)((by.of(amount) ^ negative) - negative);
    }
    METHOD word of(word a) const
    {
        word out = 0;

#pragma unroll
        for (int i = 0; i < lanes<T>::n; i++)
            out |= lanes<T>::put(one(lanes<T>::get(a, i)), i);
        return out;
    }
};

/* Bytes: a / n by one multiplication.  Let m = 2^16 / n rounded down, plus 1.  Then the
 * upper half of a m is a / n rounded down; for negative a it is one less than a / n
 * rounded towards 0.
 *
 * Proof: m n = 2^16 + e with 0 < e <= n, so a m / 2^16 = a / n + a e / (n 2^16).  If
 * n <= 256, |a| e < 2^16, so the last term is less than 1 / n.  If n > 256, m <= 256, so
 * |a| m < 2^16.
 */
template <typename T> struct byte_scale : few_on<T> {
    int32_t m;

    METHOD byte_scale(int n, uint64_t magic)
        : m((int32_t)divisor<uint32_t>(n, magic).of(65536) + 1)
    {
    }
    METHOD int32_t product(uint32_t w, int i) const
    {
        return (int32_t)(T)(w >> 8 * i) * m;
    }
    METHOD uint32_t of(uint32_t w) const
    {
        uint32_t q =
            third_bytes((uint32_t)product(w, 0), (uint32_t)product(w, 1),
                        (uint32_t)product(w, 2), (uint32_t)product(w, 3));

        if (!is_signed<T>::value)
            return q;
        return ((q & 0x7f7f7f7f) + (w >> 7 & 0x01010101)) ^ (q & 0x80808080);
    }
};
template <> struct scale<int8_t> : byte_scale<int8_t> {
    METHOD scale(int n, uint64_t magic) : byte_scale<int8_t>(n, magic) {}
};
template <> struct scale<uint8_t> : byte_scale<uint8_t> {
    METHOD scale(int n, uint64_t magic) : byte_scale<uint8_t>(n, magic) {}
};

/* Compute a / n in f32, rounded to nearest even, for integers n up to COLL__FEW_RANKS and
 * any a, without a branch.
 *
 * Let u be the unit in the last place of q = a (1 / n); q is off by 1.5 u at most.
 * rest = a - n q is exact: it is a multiple of u (of 2^-149 at least), and 1.5 n u at
 * most.  So q + rest / n = a / n exactly, and q + rest (1 / n) differs from it by
 * 1.5 2^-24 u at most.  Unless a / n is half way between two floats, it is at least
 * u / 2n away from half way, which is more.  So both round to the same float.
 *
 * Half way happens only for subnormal numbers, with rest = +-n / 2 units of 2^-149
 * (else a would have too many bits).  Then the code adds half a unit to q.  For other
 * numbers such a rest is less than half a unit, and the sum rounds to q in both ways.
 * If rest is 0, the result is q, which keeps -0; if rest is NaN, it is q too, which
 * keeps infinities.
 */
struct quotient {
    float n, inverse, half;

    METHOD explicit quotient(int ranks)
        : n((float)ranks), inverse(1.0f / n),
          half(ranks % 2 ? -1.0f : f32_from((uint32_t)ranks / 2))
    {
    }
    METHOD float of(float a) const
    {
        float q = a * inverse, rest = fmaf(-n, q, a);
        bool is_half = fabsf(rest) == half;
        float more = is_half ? copysignf(0.5f, rest) : rest;
        float by = is_half ? f32_from(1) : inverse;

        return fabsf(rest) > 0 ? fmaf(more, by, q) : q;
    }
};

template <> struct scale<float> : few_on<float> {
    quotient by;

    METHOD scale(int n_ranks, uint64_t) : by(n_ranks) {}
    METHOD uint32_t of(uint32_t a) const
    {
        return f32_bits(by.of(f32_from(a)));
    }
};
template <> struct scale<double> : division_on<double> {
    double n;

    METHOD scale(int n_ranks, uint64_t) : n((double)n_ranks) {}
    METHOD uint64_t of(uint64_t a) const { return f64_bits(f64_from(a) / n); }
};

/* As NARROW_SCALE of reduce_kernels.h. */
struct narrow_quotient {
    quotient by;
    float times;

    METHOD narrow_quotient(int n_ranks, int least)
        : by(n_ranks), times(power_for(n_ranks, least))
    {
    }
    METHOD float operator()(float a, float) const { return by.of(a) * times; }
};
template <class N> struct narrow_scale : few_on<N> {
    narrow_quotient by;

    METHOD explicit narrow_scale(int n_ranks) : by(n_ranks, N::least) {}
    METHOD uint32_t of(uint32_t a) const { return lanes<N>::map(a, a, by); }
};
#define NARROW_SCALE(N)                                                        \
    template <> struct scale<N> : narrow_scale<N> {                            \
        METHOD scale(int ranks, uint64_t) : narrow_scale<N>(ranks) {}          \
    };
NARROW_SCALE(f16)
NARROW_SCALE(bf16)
NARROW_SCALE(f8e4m3)
NARROW_SCALE(f8e5m2)

/* Divide by more ranks than COLL__FEW_RANKS: rare, so by the device's own division. */
struct by_many {
    float n, times;

    template <typename T> METHOD T operator()(T a, T) const
    {
        return a / n * times;
    }
};
template <class N> DEVICE float times_for(int n_ranks, N)
{
    return power_for(n_ranks, N::least);
}
DEVICE float times_for(int, float) { return 1; }

template <typename T> struct scale_by_many : division_on<T> {
    by_many by;

    METHOD explicit scale_by_many(int n_ranks)
    {
        by.n = (float)n_ranks;
        by.times = times_for(n_ranks, T());
    }
    METHOD uint32_t of(uint32_t a) const { return lanes<T>::map(a, a, by); }
};

/* Does the scale of type T need scale_by_many? */
template <typename T> struct is_in_f32 {
    static const bool value = false;
};
#define IN_F32(T)                                                              \
    template <> struct is_in_f32<T> {                                          \
        static const bool value = true;                                        \
    };
IN_F32(float)
IN_F32(f16)
IN_F32(bf16)
IN_F32(f8e4m3)
IN_F32(f8e5m2)
} // namespace coll

#endif
