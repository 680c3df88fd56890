/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - conversion to 16 bits and back: bf16 by integers; f16 by the
 * processor if it can, else by integers, with the same bits. */
#include "trainer/wire.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* ---- bf16: the upper half of a float ---- */

static uint16_t to_bf16(float x)
{
    uint32_t bits = bits_of(x);

    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- f16: 1 sign, 5 of exponent, 10 of mantissa ---- */

/* Below 2^-14 the mantissa counts units of 2^-24.  Adding 0.5 leaves just these
 * in the last bits of a float, rounded by the processor. */
static uint16_t to_f16(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000;
    uint32_t size = bits & 0x7fffffff;

    if (size > 0x7f800000) /* NaN: made quiet, with its upper bits unchanged */
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000)
        return (uint16_t)(sign |
                          (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (size - 0x38000000) >> 13);
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, size = h & 0x7fff;

    if (size >= 0x7c00)
        return float_of(sign | 0x7f800000 | (size & 0x3ff) << 13 |
                        (size > 0x7c00 ? 0x400000u : 0));
    if (size < 0x400) /* units of 2^-24 */
        return float_of(sign | bits_of((float)size * 0x1p-24f));
    return float_of(sign | ((size << 13) + 0x38000000));
}

#if defined(__x86_64__)

/* Clang 14 does not know "f16c"; AVX tells whether the kernel saves the
 * registers.  In a virtual machine the question is slow, so it is asked once;
 * two threads that ask at once get the same answer. */
static int has_f16c(void)
{
    static atomic_int answer; /* 0: not asked yet, 1: no, 2: yes */
    unsigned a, b, c, d;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (!known) {
        known = 1 + (__builtin_cpu_supports("avx") &&
                     __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C));
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 2;
}

__attribute__((target("avx,f16c"))) static size_t
pack_f16c(const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
                                         _MM_FROUND_TO_NEAREST_INT));
    return i;
}

__attribute__((target("avx,f16c"))) static size_t
unpack_f16c(const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i,
                         _mm256_cvtph_ps(_mm_loadu_si128(
                             (const __m128i *)(const void *)(from + i))));
    return i;
}
#else
#define has_f16c() 0
#define pack_f16c(from, to, n) 0
#define unpack_f16c(from, to, n) 0
#endif

void wire_pack(enum wire wire, const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;

    if (wire == WIRE_F16 && has_f16c())
        i = pack_f16c(from, to, n);
    for (; i < n; i++)
        to[i] = wire == WIRE_F16 ? to_f16(from[i]) : to_bf16(from[i]);
}

void wire_unpack(enum wire wire, const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;

    if (wire == WIRE_F16 && has_f16c())
        i = unpack_f16c(from, to, n);
    for (; i < n; i++)
        to[i] = wire == WIRE_F16 ? from_f16(from[i])
                                 : float_of((uint32_t)from[i] << 16);
}
