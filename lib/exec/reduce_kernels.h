/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_kernels.h - all kernels of one instruction set; included once by each
 * reduce_<set>.c, which defines
 *   SET          the set's name
 *   SET_TARGET   the attribute that lets the compiler use it
 *   f16_widen_n, f16_narrow_n   conversion of n elements
 * The loops are plain; the compiler makes the vector code.
 */
#include "lib/exec/number.h"
#include "lib/exec/reduce.h"
#include "lib/util/util.h"

#define NAME_2(a, b) a##b
#define NAME(a, b) NAME_2(a, b)
#define TEXT_2(a) #a
#define TEXT(a) TEXT_2(a)

/* name: dst[i] = expr of a = dst[i] and b = src[i]. */
#define REDUCE(name, T, expr)                                                  \
    SET_TARGET static void name(void *dst, const void *src, size_t len)        \
    {                                                                          \
        typedef T __attribute__((aligned(1), may_alias)) anywhere;             \
        T *restrict d = dst;                                                   \
        const anywhere *restrict s = src;                                      \
                                                                               \
        for (size_t i = 0; i < len / sizeof(T); i++) {                         \
            T a = d[i], b = s[i];                                              \
                                                                               \
            d[i] = (T)(expr);                                                  \
        }                                                                      \
    }

#define SCALE(name, T, expr)                                                   \
    SET_TARGET static void name(void *dst, size_t len, int n)                  \
    {                                                                          \
        T *d = dst;                                                            \
                                                                               \
        for (size_t i = 0; i < len / sizeof(T); i++) {                         \
            T a = d[i];                                                        \
                                                                               \
            d[i] = (T)(expr);                                                  \
        }                                                                      \
    }

/* W is unsigned and no narrower than int: sums and products wrap in it. */
#define INTEGER(id, T, W)                                                      \
    REDUCE(sum_##id, T, (W)a + (W)b)                                           \
    REDUCE(prod_##id, T, (W)a *(W)b)                                           \
    REDUCE(min_##id, T, a < b ? a : b)                                         \
    REDUCE(max_##id, T, a > b ? a : b)                                         \
    SCALE(scale_##id, T, a / (T)n)

/* n may be more than T holds; int holds every T and n. */
#define SMALL_INTEGER(id, T)                                                   \
    REDUCE(sum_##id, T, (uint32_t)a + (uint32_t)b)                             \
    REDUCE(prod_##id, T, (uint32_t)a *(uint32_t)b)                             \
    REDUCE(min_##id, T, a < b ? a : b)                                         \
    REDUCE(max_##id, T, a > b ? a : b)                                         \
    SCALE(scale_##id, T, (int)a / n)

#define FLOAT(id, T, prefix)                                                   \
    REDUCE(sum_##id, T, a + b)                                                 \
    REDUCE(prod_##id, T, a *b)                                                 \
    REDUCE(min_##id, T, prefix##_min(a, b))                                    \
    REDUCE(max_##id, T, prefix##_max(a, b))                                    \
    SCALE(scale_##id, T, a / (T)n)

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

/* Half-width floats pass through blocks of f32 that stay in the L1 cache. */
#define BLOCK 256

SET_TARGET static void bf16_widen_n(float *out, const half_anywhere *in,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_widen(in[i]);
}

SET_TARGET static void bf16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_narrow(in[i]);
}

#define HALF_REDUCE(name, half, f32_kernel)                                    \
    SET_TARGET static void name(void *dst, const void *src, size_t len)        \
    {                                                                          \
        uint16_t *d = dst;                                                     \
        const half_anywhere *s = src;                                          \
        float a[BLOCK], b[BLOCK];                                              \
                                                                               \
        for (size_t n, left = len / 2; left; left -= n, d += n, s += n) {      \
            n = min_size(left, BLOCK);                                         \
            half##_widen_n(a, d, n);                                           \
            half##_widen_n(b, s, n);                                           \
            f32_kernel(a, b, n * sizeof(float));                               \
            half##_narrow_n(d, a, n);                                          \
        }                                                                      \
    }

#define HALF_SCALE(name, half)                                                 \
    SET_TARGET static void name(void *dst, size_t len, int n_ranks)            \
    {                                                                          \
        uint16_t *d = dst;                                                     \
        float a[BLOCK];                                                        \
                                                                               \
        for (size_t n, left = len / 2; left; left -= n, d += n) {              \
            n = min_size(left, BLOCK);                                         \
            half##_widen_n(a, d, n);                                           \
            scale_F32(a, n * sizeof(float), n_ranks);                          \
            half##_narrow_n(d, a, n);                                          \
        }                                                                      \
    }

#define HALF(id, half)                                                         \
    HALF_REDUCE(sum_##id, half, sum_F32)                                       \
    HALF_REDUCE(prod_##id, half, prod_F32)                                     \
    HALF_REDUCE(min_##id, half, min_F32)                                       \
    HALF_REDUCE(max_##id, half, max_F32)                                       \
    HALF_SCALE(scale_##id, half)

HALF(F16, f16)
HALF(BF16, bf16)

const struct coll__kernels NAME(coll__kernels_, SET) = {
    .name = TEXT(SET),
    .reduce =
        {
#define X(id, text, bytes)                                                     \
    [COLL_##id] = {[COLL_SUM] = sum_##id,                                      \
                   [COLL_PROD] = prod_##id,                                    \
                   [COLL_MIN] = min_##id,                                      \
                   [COLL_MAX] = max_##id,                                      \
                   [COLL_AVG] = sum_##id},
            COLL_TYPE_MAP(X)
#undef X
        },
    .scale =
        {
#define X(id, text, bytes) [COLL_##id] = scale_##id,
            COLL_TYPE_MAP(X)
#undef X
        },
};
