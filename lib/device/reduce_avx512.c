/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_avx512.c - the kernels for x86 with AVX-512 (F, BW, DQ, VL). */
#include "lib/device/arith.h"
#include "lib/device/simd.h"

#if SIMD_X86
#include <immintrin.h>
#include <stddef.h>

#define SET avx512
#define SET_TARGET                                                             \
    SIMD_VECTORISE                                                             \
    __attribute__((                                                            \
        target("avx512f,avx512bw,avx512dq,avx512vl" SIMD_PREFER_512)))

/* gcc 12 fuses a product with a sum or difference beside it, in spite of
 * -ffp-contract=off. */
#define SET_NO_FMA SIMD_VECTORISE __attribute__((target("avx2")))

SET_TARGET static void f16_widen_n(float *out, const half_anywhere *in,
                                   size_t n)
{
    size_t i = 0;

    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(
                                      (const __m256i *)(in + i))));
    for (; i < n; i++)
        out[i] = f16_widen(in[i]);
}

SET_TARGET static void f16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    size_t i = 0;

    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(in + i),
                                            _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        out[i] = f16_narrow(in[i]);
}

/* Copy n bytes, a multiple of 64; dst starts at a cache line. */
SET_TARGET static void stream_lines(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        _mm512_stream_si512((__m512i *)(dst + i), _mm512_loadu_si512(src + i));
}

#include "lib/device/reduce_kernels.h"
#endif
