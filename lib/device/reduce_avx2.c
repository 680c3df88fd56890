/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_avx2.c - the kernels for x86 with AVX2 and F16C. */
#include "lib/device/arith.h"
#include "lib/device/simd.h"

#if SIMD_X86
#include <immintrin.h>
#include <stddef.h>

#define SET avx2
#define SET_TARGET SIMD_VECTORISE __attribute__((target("avx2,f16c")))

SET_TARGET static void f16_widen_n(float *out, const half_anywhere *in,
                                   size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                      (const __m128i *)(in + i))));
    for (; i < n; i++)
        out[i] = f16_widen(in[i]);
}

SET_TARGET static void f16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i),
                                         _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        out[i] = f16_narrow(in[i]);
}

/* Copy n bytes, a multiple of 64; dst starts at a cache line. */
SET_TARGET static void stream_lines(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(src + i));
        __m256i high = _mm256_loadu_si256((const __m256i *)(src + i + 32));

        _mm256_stream_si256((__m256i *)(dst + i), low);
        _mm256_stream_si256((__m256i *)(dst + i + 32), high);
    }
}

#include "lib/device/reduce_kernels.h"
#endif
