/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - conversion to 16 bits and back: f16 by the processor if it can, the rest by
 * half.h, which gives the same bits. */
#include "trainer/wire.h"
#include "lib/type/half.h"

#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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
        to[i] = wire == WIRE_F16 ? f16_narrow(from[i]) : bf16_narrow(from[i]);
}

void wire_unpack(enum wire wire, const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;

    if (wire == WIRE_F16 && has_f16c())
        i = unpack_f16c(from, to, n);
    for (; i < n; i++)
        to[i] = wire == WIRE_F16 ? f16_widen(from[i]) : bf16_widen(from[i]);
}
