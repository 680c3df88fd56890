/* SPDX-License-Identifier: BSD-3-Clause */
/* simd.h - eight floats at a time, by the compilers' vector types.
 *
 * SIMD_KERNEL(f, (parameters), (arguments)) makes a function f of f_body, which is
 * declared as SIMD_BODY.  It is compiled twice, for any machine and for AVX2 with
 * FMA; each call chooses one of them.  Vectors are never arguments of a real call,
 * so that no ABI depends on AVX.
 */
#ifndef COLL_TRAINER_SIMD_H
#define COLL_TRAINER_SIMD_H

#include <stdint.h>

#define SIMD_WIDTH 8

/* aligned(4): the address of any float will do */
typedef float vec8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t vec8i __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t vec8u __attribute__((vector_size(32), aligned(4), may_alias));

#define SIMD_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define SIMD_AVX2 __attribute__((target("avx2,fma")))
#define simd_has_avx2() \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define SIMD_AVX2
#define simd_has_avx2() 0
#endif

#define SIMD_KERNEL(name, parameters, arguments)           \
    SIMD_AVX2 static void name##_avx2 parameters           \
    {                                                      \
        name##_body arguments;                             \
    }                                                      \
    static void name##_any parameters                      \
    {                                                      \
        name##_body arguments;                             \
    }                                                      \
    static void name parameters                            \
    {                                                      \
        if (simd_has_avx2())                               \
            name##_avx2 arguments;                         \
        else                                               \
            name##_any arguments;                          \
    }

#endif
