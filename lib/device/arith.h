/* SPDX-License-Identifier: BSD-3-Clause */
/* arith.h - arithmetic on one element, without branches, so that a loop over
 * it becomes vector code.  Half-width floats are half.h's.
 */
#ifndef COLL_LIB_DEVICE_ARITH_H
#define COLL_LIB_DEVICE_ARITH_H

#include "lib/type/half.h"

#include <stdint.h>
#include <string.h>

NUMBER uint64_t f64_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

NUMBER double f64_from(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Equal numbers can only differ in the sign of zero: "or" keeps -0 for the minimum, "and"
 * keeps +0 for the maximum. */
NUMBER float f32_min(float a, float b)
{
    uint32_t x = f32_bits(a), y = f32_bits(b);
    uint32_t less = -(uint32_t)(a < b), more = -(uint32_t)(a > b);
    uint32_t same = -(uint32_t)(a == b), none = ~(less | more | same);

    return f32_from((x & less) | (y & more) | ((x | y) & same) |
                    (0x7fc00000 & none));
}

NUMBER float f32_max(float a, float b)
{
    uint32_t x = f32_bits(a), y = f32_bits(b);
    uint32_t less = -(uint32_t)(a < b), more = -(uint32_t)(a > b);
    uint32_t same = -(uint32_t)(a == b), none = ~(less | more | same);

    return f32_from((y & less) | (x & more) | (x & y & same) |
                    (0x7fc00000 & none));
}

NUMBER double f64_min(double a, double b)
{
    uint64_t x = f64_bits(a), y = f64_bits(b);
    uint64_t less = -(uint64_t)(a < b), more = -(uint64_t)(a > b);
    uint64_t same = -(uint64_t)(a == b), none = ~(less | more | same);

    return f64_from((x & less) | (y & more) | ((x | y) & same) |
                    (0x7ff8000000000000 & none));
}

NUMBER double f64_max(double a, double b)
{
    uint64_t x = f64_bits(a), y = f64_bits(b);
    uint64_t less = -(uint64_t)(a < b), more = -(uint64_t)(a > b);
    uint64_t same = -(uint64_t)(a == b), none = ~(less | more | same);

    return f64_from((y & less) | (x & more) | (x & y & same) |
                    (0x7ff8000000000000 & none));
}

#endif
