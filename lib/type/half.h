/* SPDX-License-Identifier: BSD-3-Clause */
/* half.h - the floating-point numbers of 16 and 8 bits, by operations on integers
 * without branches, so that a loop over them becomes vector code.
 *
 * f16 is IEEE binary16, bf16 the upper half of an f32.  Narrowing rounds to
 * nearest even; a NaN stays a NaN with the payload's upper bits, made quiet.
 * The results equal those of the F16C instructions bit for bit.
 *
 * f8e4m3 and f8e5m2 are those of OCP 8-bit Floating Point Specification (OFP8), 2023.
 * Narrowing rounds to nearest even and does not saturate.  f8e5m2 is the upper half of an
 * f16; f8e4m3 has no infinities, so what is too large becomes a NaN.
 *
 * Programs may include this header too, so that there is one conversion.
 */
#ifndef COLL_LIB_TYPE_HALF_H
#define COLL_LIB_TYPE_HALF_H

#include <stdint.h>
#include <string.h>

/* The attributes of the functions here; cuda_number.cuh defines those for a device. */
#ifndef NUMBER
#define NUMBER static inline __attribute__((always_inline))
#endif

/* Narrow floats at any address. */
typedef uint8_t __attribute__((may_alias)) quarter_anywhere;
typedef uint16_t __attribute__((aligned(1), may_alias)) half_anywhere;

NUMBER uint32_t f32_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

NUMBER float f32_from(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Return yes if mask is all ones, no if it is 0. */
NUMBER uint32_t pick(uint32_t mask, uint32_t yes, uint32_t no)
{
    return (yes & mask) | (no & ~mask);
}

NUMBER float f16_widen(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t size = half & 0x7fff;
    uint32_t normal = (size << 13) + (112u << 23); /* exponent bias 15 to 127 */
    uint32_t tiny = f32_bits((float)(int32_t)size * 0x1p-24f);
    uint32_t huge = 0x7f800000 | size << 13; /* infinity, NaN */
    uint32_t is_nan = -(uint32_t)(size > 0x7c00);
    uint32_t bits = pick(-(uint32_t)(size < 0x400), tiny, normal);

    bits = pick(-(uint32_t)(size >= 0x7c00), huge, bits);
    return f32_from(sign | bits | (is_nan & 0x400000));
}

NUMBER uint16_t f16_narrow(float x)
{
    uint32_t bits = f32_bits(x), size = bits & 0x7fffffff;
    uint32_t odd = size >> 13 & 1;
    uint32_t normal = (size - (112u << 23) + 0xfff + odd) >> 13;
    /* The last place of 0.5f is the smallest f16, so the sum rounds to it. */
    uint32_t tiny = f32_bits(f32_from(size) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
    uint32_t half = pick(-(uint32_t)(size < 0x38800000), tiny, normal);

    half = pick(-(uint32_t)(size >= 0x477ff000), 0x7c00, half); /* 65520 */
    half = pick(-(uint32_t)(size > 0x7f800000), nan, half);
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

NUMBER float bf16_widen(uint16_t half)
{
    return f32_from((uint32_t)half << 16);
}

NUMBER uint16_t bf16_narrow(float x)
{
    uint32_t bits = f32_bits(x);
    uint32_t is_nan = -(uint32_t)((bits & 0x7fffffff) > 0x7f800000);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)pick(is_nan, bits >> 16 | 0x40, rounded);
}

NUMBER float f8e4m3_widen(uint8_t quarter)
{
    uint32_t sign = (uint32_t)(quarter & 0x80) << 24;
    uint32_t size = quarter & 0x7f;
    uint32_t normal = (size << 20) + (120u << 23); /* exponent bias 7 to 127 */
    uint32_t tiny = f32_bits((float)(int32_t)size * 0x1p-9f);
    uint32_t bits = pick(-(uint32_t)(size < 8), tiny, normal);

    return f32_from(sign | pick(-(uint32_t)(size == 0x7f), 0x7fc00000, bits));
}

NUMBER uint8_t f8e4m3_narrow(float x)
{
    uint32_t bits = f32_bits(x), size = bits & 0x7fffffff;
    uint32_t odd = size >> 20 & 1;
    uint32_t normal = (size - (120u << 23) + 0x7ffff + odd) >> 20;
    /* The last place of 2^14 is the least f8e4m3, so the sum rounds to it. */
    uint32_t tiny = f32_bits(f32_from(size) + 0x1p14f) - 0x46800000;
    uint32_t all = pick(-(uint32_t)(size < 0x3c800000), tiny, normal);

    all = pick(-(uint32_t)(size > 0x43e80000), 0x7f, all); /* 464, NaN */
    return (uint8_t)(all | (bits >> 24 & 0x80));
}

NUMBER float f8e5m2_widen(uint8_t quarter)
{
    return f16_widen((uint16_t)(quarter << 8));
}

NUMBER uint8_t f8e5m2_narrow(float x)
{
    uint32_t bits = f32_bits(x), size = bits & 0x7fffffff;
    uint32_t odd = size >> 21 & 1;
    uint32_t normal = (size - (112u << 23) + 0xfffff + odd) >> 21;
    /* The last place of 128 is the least f8e5m2. */
    uint32_t tiny = f32_bits(f32_from(size) + 128) - 0x43000000;
    uint32_t all = pick(-(uint32_t)(size < 0x38800000), tiny, normal);

    all = pick(-(uint32_t)(size >= 0x47700000), 0x7c, all); /* 61440 */
    all = pick(-(uint32_t)(size > 0x7f800000), 0x7e | (size >> 21 & 3), all);
    return (uint8_t)(all | (bits >> 24 & 0x80));
}

/* Return the least power of two that is not less than n, for n from 1 to 2^24. */
NUMBER float power_from(int n)
{
    return f32_from((f32_bits((float)n) + 0x7fffff) & 0xff800000);
}

/* An average divides each input by power_for(n, LEAST), and the sum by n / that.  LEAST
 * is the number of powers of two below 1 that the type has: no quotient 1 / power is
 * less. */
#define F16_LEAST 24
#define BF16_LEAST 133
#define F8E4M3_LEAST 9
#define F8E5M2_LEAST 16

NUMBER float power_for(int n, int least)
{
    return least < 24 && n > 1 << least ? power_from(1 << least)
                                        : power_from(n);
}

#endif
