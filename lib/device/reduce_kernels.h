/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_kernels.h - all kernels of one instruction set; included once by each
 * reduce_<set>.c, which defines
 *   SET          the set's name
 *   SET_TARGET   the attribute that lets the compiler use it
 *   f16_widen_n, f16_narrow_n   conversion of n elements
 *   stream_lines   copy of whole cache lines past the caches
 * and, if the compiler may fuse products and sums in that set,
 *   SET_NO_FMA   the attribute for one in which it does not
 * The other loops are plain; the compiler makes the vector code.
 */
#include "lib/device/arith_two.h"
#include "lib/util/float_state.h"
#include "lib/device/reduce.h"
#include "lib/util/util.h"

#define NAME_2(a, b) a##b
#define NAME(a, b) NAME_2(a, b)
#define TEXT_2(a) #a
#define TEXT(a) TEXT_2(a)

/* No kernel is inlined, so none of its arithmetic moves out of the floating-point state
 * that the caller sets. */
#define KERNEL SET_TARGET __attribute__((noinline)) static

#ifndef SET_NO_FMA
#define SET_NO_FMA SET_TARGET
#endif
#define KERNEL_NO_FMA SET_NO_FMA __attribute__((noinline)) static

/* name: dst[i] = expr of a = left[i] and b = right[i].  dst may be left or right:
 * then still no iteration reads an element that another one writes. */
#define REDUCE(name, T, expr)                                                  \
    KERNEL void name(void *dst, const void *left, const void *right,           \
                     size_t len)                                               \
    {                                                                          \
        typedef T __attribute__((aligned(1), may_alias)) anywhere;             \
        T *d = dst;                                                            \
        const T *l = left;                                                     \
        const anywhere *r = right;                                             \
                                                                               \
        SIMD_INDEPENDENT                                                       \
        for (size_t i = 0; i < len / sizeof(T); i++) {                         \
            T a = l[i], b = r[i];                                              \
                                                                               \
            d[i] = (T)(expr);                                                  \
        }                                                                      \
    }

#define SCALE(name, T, expr)                                                   \
    KERNEL void name(void *dst, size_t len, int n)                             \
    {                                                                          \
        T *d = dst;                                                            \
                                                                               \
        for (size_t i = 0; i < len / sizeof(T); i++) {                         \
            T a = d[i];                                                        \
                                                                               \
            d[i] = (T)(expr);                                                  \
        }                                                                      \
    }

/* name: dst[i] = expr of a = src[i] and f = *factor; dst may be src. */
#define MULTIPLY(name, T, expr)                                                \
    KERNEL void name(void *dst, const void *src, size_t len,                   \
                     const void *factor)                                       \
    {                                                                          \
        typedef T __attribute__((aligned(1), may_alias)) anywhere;             \
        T *d = dst;                                                            \
        const anywhere *s = src;                                               \
        T f = *(const anywhere *)factor;                                       \
                                                                               \
        SIMD_INDEPENDENT                                                       \
        for (size_t i = 0; i < len / sizeof(T); i++) {                         \
            T a = s[i];                                                        \
                                                                               \
            d[i] = (T)(expr);                                                  \
        }                                                                      \
    }

/* Is a number true?  A NaN is, -0 is not. */
#define LOGICAL(prefix, id, T)                                                 \
    REDUCE(prefix##land_##id, T, (a != 0) & (b != 0))                          \
    REDUCE(prefix##lor_##id, T, (a != 0) | (b != 0))                           \
    REDUCE(prefix##lxor_##id, T, (a != 0) ^ (b != 0))

#define BITWISE(id, T)                                                         \
    REDUCE(band_##id, T, a & b)                                                \
    REDUCE(bor_##id, T, a | b)                                                 \
    REDUCE(bxor_##id, T, a ^ b)

/* W is unsigned and no narrower than int: sums and products wrap in it. */
#define INTEGER(id, T, W)                                                      \
    REDUCE(sum_##id, T, (W)a + (W)b)                                           \
    REDUCE(prod_##id, T, (W)a *(W)b)                                           \
    REDUCE(min_##id, T, a < b ? a : b)                                         \
    REDUCE(max_##id, T, a > b ? a : b)                                         \
    SCALE(scale_##id, T, a / (T)n)                                             \
    MULTIPLY(multiply_##id, T, (W)a *(W)f)                                     \
    LOGICAL(, id, T)                                                           \
    BITWISE(id, T)

/* n may exceed the range of T; int holds every T and n. */
#define SMALL_INTEGER(id, T)                                                   \
    REDUCE(sum_##id, T, (uint32_t)a + (uint32_t)b)                             \
    REDUCE(prod_##id, T, (uint32_t)a *(uint32_t)b)                             \
    REDUCE(min_##id, T, a < b ? a : b)                                         \
    REDUCE(max_##id, T, a > b ? a : b)                                         \
    SCALE(scale_##id, T, (int)a / n)                                           \
    MULTIPLY(multiply_##id, T, (uint32_t)a *(uint32_t)f)                       \
    LOGICAL(, id, T)                                                           \
    BITWISE(id, T)

/* The kernels of a float type: they call raw_<op>_<id> in the default floating-point
 * state. */
#define REDUCE_IN_STATE(name)                                                  \
    static void name(void *dst, const void *left, const void *right,           \
                     size_t len)                                               \
    {                                                                          \
        unsigned long own = float_state_enter();                               \
                                                                               \
        raw_##name(dst, left, right, len);                                     \
        float_state_leave(own);                                                \
    }

#define SCALE_IN_STATE(name)                                                   \
    static void name(void *dst, size_t len, int n_ranks)                       \
    {                                                                          \
        unsigned long own = float_state_enter();                               \
                                                                               \
        raw_##name(dst, len, n_ranks);                                         \
        float_state_leave(own);                                                \
    }

#define MULTIPLY_IN_STATE(name)                                                \
    static void name(void *dst, const void *src, size_t len,                   \
                     const void *factor)                                       \
    {                                                                          \
        unsigned long own = float_state_enter();                               \
                                                                               \
        raw_##name(dst, src, len, factor);                                     \
        float_state_leave(own);                                                \
    }

#define IN_DEFAULT_STATE(id)                                                   \
    REDUCE_IN_STATE(sum_##id)                                                  \
    REDUCE_IN_STATE(prod_##id)                                                 \
    REDUCE_IN_STATE(min_##id)                                                  \
    REDUCE_IN_STATE(max_##id)                                                  \
    REDUCE_IN_STATE(land_##id)                                                 \
    REDUCE_IN_STATE(lor_##id)                                                  \
    REDUCE_IN_STATE(lxor_##id)                                                 \
    SCALE_IN_STATE(scale_##id)                                                 \
    MULTIPLY_IN_STATE(multiply_##id)

#define FLOAT(id, T, prefix)                                                   \
    REDUCE(raw_sum_##id, T, a + b)                                             \
    REDUCE(raw_prod_##id, T, a *b)                                             \
    REDUCE(raw_min_##id, T, prefix##_min(a, b))                                \
    REDUCE(raw_max_##id, T, prefix##_max(a, b))                                \
    SCALE(raw_scale_##id, T, a / (T)n)                                         \
    MULTIPLY(raw_multiply_##id, T, a *f)                                       \
    LOGICAL(raw_, id, T)                                                       \
    IN_DEFAULT_STATE(id)

SMALL_INTEGER(I8, int8_t)
SMALL_INTEGER(U8, uint8_t)
SMALL_INTEGER(I16, int16_t)
SMALL_INTEGER(U16, uint16_t)
INTEGER(I32, int32_t, uint32_t)
INTEGER(U32, uint32_t, uint32_t)
INTEGER(I64, int64_t, uint64_t)
INTEGER(U64, uint64_t, uint64_t)
FLOAT(F32, float, f32)
FLOAT(F64, double, f64)

/* Sums and quotients of complex numbers are those of their parts.  If a product were fused
 * with the sum, the result would depend on the order of the operands. */
#define COMPLEX(id, number, T)                                                 \
    KERNEL_NO_FMA void raw_prod_##id(void *dst, const void *left,              \
                                     const void *right, size_t len)            \
    {                                                                          \
        typedef T __attribute__((aligned(1), may_alias)) anywhere;             \
        T *d = dst;                                                            \
        const T *l = left;                                                     \
        const anywhere *r = right;                                             \
                                                                               \
        SIMD_INDEPENDENT                                                       \
        for (size_t i = 0; i < len / sizeof(T); i += 2) {                      \
            struct number x = number##_prod((struct number){l[i], l[i + 1]},   \
                                            (struct number){r[i], r[i + 1]});  \
                                                                               \
            d[i] = x.re;                                                       \
            d[i + 1] = x.im;                                                   \
        }                                                                      \
    }                                                                          \
    KERNEL_NO_FMA void raw_multiply_##id(void *dst, const void *src,           \
                                         size_t len, const void *factor)       \
    {                                                                          \
        typedef T __attribute__((aligned(1), may_alias)) anywhere;             \
        T *d = dst;                                                            \
        const anywhere *s = src, *f = factor;                                  \
        struct number by = {f[0], f[1]};                                       \
                                                                               \
        SIMD_INDEPENDENT                                                       \
        for (size_t i = 0; i < len / sizeof(T); i += 2) {                      \
            struct number x =                                                  \
                number##_prod((struct number){s[i], s[i + 1]}, by);            \
                                                                               \
            d[i] = x.re;                                                       \
            d[i + 1] = x.im;                                                   \
        }                                                                      \
    }                                                                          \
    REDUCE_IN_STATE(prod_##id)                                                 \
    MULTIPLY_IN_STATE(multiply_##id)

COMPLEX(C64, c64, float)
COMPLEX(C128, c128, double)

/* arith: the function of arith_two.h. */
#define LOC(name, pair, arith)                                                 \
    KERNEL void raw_##name(void *dst, const void *left, const void *right,     \
                           size_t len)                                         \
    {                                                                          \
        struct pair *d = dst, b;                                               \
        const struct pair *l = left;                                           \
        const char *r = right;                                                 \
                                                                               \
        for (size_t i = 0; i < len / sizeof(b); i++) {                         \
            memcpy(&b, r + i * sizeof(b), sizeof(b));                          \
            d[i] = arith(l[i], b);                                             \
        }                                                                      \
    }                                                                          \
    REDUCE_IN_STATE(name)

#define PAIR(id, pair)                                                         \
    LOC(minloc_##id, pair, pair##_minloc)                                      \
    LOC(maxloc_##id, pair, pair##_maxloc)

PAIR(F32_I32, f32_i32)
PAIR(F64_I32, f64_i32)
PAIR(I32_I32, i32_i32)

/* Narrow floats pass through blocks of f32 that stay in the L1 cache. */
#define BLOCK 256

SET_TARGET static void bf16_widen_n(float *out, const half_anywhere *in,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_widen(in[i]);
}

/* AVX512_BF16's conversion is not used: it always treats tiny numbers (below 2^-126) as
 * 0, and every instruction set must give the same bits. */
SET_TARGET static void bf16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_narrow(in[i]);
}

#define QUARTER(narrow)                                                        \
    SET_TARGET static void narrow##_widen_n(                                   \
        float *out, const quarter_anywhere *in, size_t n)                      \
    {                                                                          \
        for (size_t i = 0; i < n; i++)                                         \
            out[i] = narrow##_widen(in[i]);                                    \
    }                                                                          \
    SET_TARGET static void narrow##_narrow_n(uint8_t *out, const float *in,    \
                                             size_t n)                         \
    {                                                                          \
        for (size_t i = 0; i < n; i++)                                         \
            out[i] = narrow##_narrow(in[i]);                                   \
    }

QUARTER(f8e4m3)
QUARTER(f8e5m2)

/* T: what holds a narrow float, at any address `anywhere`. */
#define NARROW_REDUCE(name, narrow, T, anywhere, f32_kernel)                   \
    KERNEL void name(void *dst, const void *left, const void *right,           \
                     size_t len)                                               \
    {                                                                          \
        T *d = dst;                                                            \
        const anywhere *l = left, *r = right;                                  \
        float a[BLOCK], b[BLOCK];                                              \
                                                                               \
        for (size_t n, all = len / sizeof(T), i = 0; i < all; i += n) {        \
            n = min_size(all - i, BLOCK);                                      \
            narrow##_widen_n(a, l + i, n);                                     \
            narrow##_widen_n(b, r + i, n);                                     \
            f32_kernel(a, a, b, n * sizeof(float));                            \
            narrow##_narrow_n(d + i, a, n);                                    \
        }                                                                      \
    }

/* a / n first: a * f may be more than an f32 holds.  The quotient is rounded as an f32;
 * the product has no more bits than that. */
#define NARROW_SCALE(name, narrow, T, least)                                   \
    KERNEL void name(void *dst, size_t len, int n_ranks)                       \
    {                                                                          \
        T *d = dst;                                                            \
        float a[BLOCK], b[BLOCK], f = power_for(n_ranks, least);               \
                                                                               \
        for (size_t n, left = len / sizeof(T); left; left -= n, d += n) {      \
            n = min_size(left, BLOCK);                                         \
            narrow##_widen_n(a, d, n);                                         \
            raw_scale_F32(a, n * sizeof(float), n_ranks);                      \
            raw_multiply_F32(b, a, n * sizeof(float), &f);                     \
            narrow##_narrow_n(d, b, n);                                        \
        }                                                                      \
    }

#define NARROW_MULTIPLY(name, narrow, T, anywhere)                             \
    KERNEL void name(void *dst, const void *src, size_t len,                   \
                     const void *factor)                                       \
    {                                                                          \
        T *d = dst;                                                            \
        const anywhere *s = src;                                               \
        float a[BLOCK], b[BLOCK], f;                                           \
                                                                               \
        memcpy(&f, factor, sizeof(f));                                         \
        for (size_t n, left = len / sizeof(T); left;                           \
             left -= n, d += n, s += n) {                                      \
            n = min_size(left, BLOCK);                                         \
            narrow##_widen_n(b, s, n);                                         \
            raw_multiply_F32(a, b, n * sizeof(float), &f);                     \
            narrow##_narrow_n(d, a, n);                                        \
        }                                                                      \
    }

#define NARROW(id, narrow, T, anywhere, least)                                 \
    NARROW_REDUCE(raw_sum_##id, narrow, T, anywhere, raw_sum_F32)              \
    NARROW_REDUCE(raw_prod_##id, narrow, T, anywhere, raw_prod_F32)            \
    NARROW_REDUCE(raw_min_##id, narrow, T, anywhere, raw_min_F32)              \
    NARROW_REDUCE(raw_max_##id, narrow, T, anywhere, raw_max_F32)              \
    NARROW_REDUCE(raw_land_##id, narrow, T, anywhere, raw_land_F32)            \
    NARROW_REDUCE(raw_lor_##id, narrow, T, anywhere, raw_lor_F32)              \
    NARROW_REDUCE(raw_lxor_##id, narrow, T, anywhere, raw_lxor_F32)            \
    NARROW_SCALE(raw_scale_##id, narrow, T, least)                             \
    NARROW_MULTIPLY(raw_multiply_##id, narrow, T, anywhere)                    \
    IN_DEFAULT_STATE(id)

NARROW(F16, f16, uint16_t, half_anywhere, F16_LEAST)
NARROW(BF16, bf16, uint16_t, half_anywhere, BF16_LEAST)
NARROW(F8E4M3, f8e4m3, uint8_t, quarter_anywhere, F8E4M3_LEAST)
NARROW(F8E5M2, f8e5m2, uint8_t, quarter_anywhere, F8E5M2_LEAST)

/* Stream whole cache lines of dst; memcpy() copies both ends. */
SET_TARGET static void copy_stream(void *dst, const void *src, size_t len)
{
    size_t head = min_size(-(uintptr_t)dst % 64, len);
    size_t lines = (len - head) / 64 * 64, tail = len - head - lines;
    const char *from = src;
    char *to = dst;

    if (head)
        memcpy(to, from, head);
    if (lines)
        stream_lines(to + head, from + head, lines);
    if (tail)
        memcpy(to + len - tail, from + len - tail, tail);
}

#define NUMBER_OPS(id)                                                         \
    [COLL_SUM] = sum_##id, [COLL_PROD] = prod_##id, [COLL_MIN] = min_##id,     \
    [COLL_MAX] = max_##id, [COLL_AVG] = sum_##id, [COLL_LAND] = land_##id,     \
    [COLL_LOR] = lor_##id, [COLL_LXOR] = lxor_##id

#define BITWISE_OPS(id)                                                        \
    [COLL_BAND] = band_##id, [COLL_BOR] = bor_##id, [COLL_BXOR] = bxor_##id

#define INTEGER_ROW(id) [COLL_##id] = {NUMBER_OPS(id), BITWISE_OPS(id)}
#define FLOAT_ROW(id) [COLL_##id] = {NUMBER_OPS(id)} /* bits: NULL */

/* Truth is that of u8. */
#define BOOL_ROW                                                               \
    [COLL_BOOL] = {                                                            \
        [COLL_SUM] = lor_U8,   [COLL_PROD] = land_U8, [COLL_MIN] = land_U8,    \
        [COLL_MAX] = lor_U8,   [COLL_BAND] = land_U8, [COLL_BOR] = lor_U8,     \
        [COLL_BXOR] = lxor_U8, [COLL_LAND] = land_U8, [COLL_LOR] = lor_U8,     \
        [COLL_LXOR] = lxor_U8}

#define COMPLEX_ROW(id, part)                                                  \
    [COLL_##id] = {[COLL_SUM] = sum_##part,                                    \
                   [COLL_PROD] = prod_##id,                                    \
                   [COLL_AVG] = sum_##part}

#define PAIR_ROW(id)                                                           \
    [COLL_##id] = {[COLL_MINLOC] = minloc_##id, [COLL_MAXLOC] = maxloc_##id}

#define FOR_REALS(name)                                                        \
    [COLL_I8] = name##_I8, [COLL_U8] = name##_U8, [COLL_I16] = name##_I16,     \
    [COLL_U16] = name##_U16, [COLL_I32] = name##_I32, [COLL_U32] = name##_U32, \
    [COLL_I64] = name##_I64, [COLL_U64] = name##_U64, [COLL_F16] = name##_F16, \
    [COLL_BF16] = name##_BF16, [COLL_F32] = name##_F32,                        \
    [COLL_F64] = name##_F64, [COLL_F8E4M3] = name##_F8E4M3,                    \
    [COLL_F8E5M2] = name##_F8E5M2

const struct coll__kernels NAME(coll__kernels_, SET) = {
    .name = TEXT(SET),
    .reduce = {INTEGER_ROW(I8),
               INTEGER_ROW(U8),
               INTEGER_ROW(I16),
               INTEGER_ROW(U16),
               INTEGER_ROW(I32),
               INTEGER_ROW(U32),
               INTEGER_ROW(I64),
               INTEGER_ROW(U64),
               FLOAT_ROW(F16),
               FLOAT_ROW(BF16),
               FLOAT_ROW(F32),
               FLOAT_ROW(F64),
               BOOL_ROW,
               FLOAT_ROW(F8E4M3),
               FLOAT_ROW(F8E5M2),
               COMPLEX_ROW(C64, F32),
               COMPLEX_ROW(C128, F64),
               PAIR_ROW(F32_I32),
               PAIR_ROW(F64_I32),
               PAIR_ROW(I32_I32)},
    .scale =
        {FOR_REALS(scale), [COLL_C64] = scale_F32, [COLL_C128] = scale_F64},
    .multiply = {FOR_REALS(multiply), [COLL_C64] = multiply_C64,
                 [COLL_C128] = multiply_C128},
    .copy_stream = copy_stream,
};
