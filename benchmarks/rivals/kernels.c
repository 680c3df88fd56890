/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - the inner loops that measure the machine's bandwidth.
 *
 * They use whole cache lines, by vectors as wide as a line.  A sum reads two
 * lines and writes one.  Stores that bypass the caches save the read of the line that
 * is written.  They are faster if the buffers are larger than the caches.
 */
#include "benchmarks/rivals/compare.h"

#include <string.h>

enum { WIDTH = 16 }; /* floats of a line */

typedef float line_of_floats __attribute__((vector_size(64)));

static void copy_plain(float *to, const float *a, const float *b, size_t n)
{
    (void)b;
    memcpy(to, a, n * sizeof(float));
}

static inline __attribute__((always_inline)) void
sum_lines(float *to, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i += WIDTH)
        *(line_of_floats *)(void *)(to + i) =
            *(const line_of_floats *)(const void *)(a + i) +
            *(const line_of_floats *)(const void *)(b + i);
}

static void sum_plain(float *to, const float *a, const float *b, size_t n)
{
    sum_lines(to, a, b, n);
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static void
sum_wide(float *to, const float *a, const float *b, size_t n)
{
    sum_lines(to, a, b, n);
}

static void copy_past(float *to, const float *a, const float *b, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i += 4)
        _mm_stream_ps(to + i, _mm_load_ps(a + i));
    _mm_sfence();
}

static void sum_past(float *to, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        _mm_stream_ps(to + i,
                      _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
    _mm_sfence();
}

kernel_fn *kernel(int is_sum, int is_past)
{
    if (is_past)
        return is_sum ? sum_past : copy_past;
    return !is_sum                             ? copy_plain
           : __builtin_cpu_supports("avx512f") ? sum_wide
                                               : sum_plain;
}
#else
kernel_fn *kernel(int is_sum, int is_past)
{
    (void)is_past; /* no portable way past the caches */
    return is_sum ? sum_plain : copy_plain;
}
#endif
