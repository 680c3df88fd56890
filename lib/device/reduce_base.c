/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_base.c - the kernels that every processor runs. */
#include "lib/device/arith.h"
#include "lib/device/simd.h"

#include <stddef.h>
#if SIMD_X86
#include <immintrin.h>
#endif

#define SET base
#define SET_TARGET SIMD_VECTORISE

SET_TARGET static void f16_widen_n(float *out, const half_anywhere *in,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f16_widen(in[i]);
}

SET_TARGET static void f16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f16_narrow(in[i]);
}

/* Copy n bytes, a multiple of 64; dst starts at a cache line.  SSE2 is
 * part of every x86-64. */
#if SIMD_X86
SET_TARGET static void stream_lines(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        _mm_stream_si128((__m128i *)(dst + i),
                         _mm_loadu_si128((const __m128i *)(src + i)));
}
#else
SET_TARGET static void stream_lines(char *dst, const char *src, size_t n)
{
    memcpy(dst, src, n);
}
#endif

#include "lib/device/reduce_kernels.h"
