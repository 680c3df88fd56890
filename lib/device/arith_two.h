/* SPDX-License-Identifier: BSD-3-Clause */
/* arith_two.h - arithmetic on one element that has two parts, without branches, so that
 * a loop over it becomes vector code.
 */
#ifndef COLL_LIB_DEVICE_ARITH_TWO_H
#define COLL_LIB_DEVICE_ARITH_TWO_H

#include "lib/device/arith.h"
#include "lib/device/simd.h"

/* Complex numbers.  The textbook formula, as GPU libraries and Fortran have it: what C
 * does in addition for infinities costs branches. */
#define ARITH_COMPLEX(id, T)                                                   \
    struct id {                                                                \
        T re, im;                                                              \
    };                                                                         \
                                                                               \
    NUMBER struct id id##_prod(struct id a, struct id b)                       \
    {                                                                          \
        return (struct id){a.re * b.re - a.im * b.im,                          \
                           a.re * b.im + a.im * b.re};                         \
    }

ARITH_COMPLEX(c64, float)
ARITH_COMPLEX(c128, double)

/* Pairs of a value and an index. */
struct f32_i32 {
    float value;
    int32_t index;
};
struct f64_i32 {
    double value;
    int32_t index, padding; /* 0 in results */
};
struct i32_i32 {
    int32_t value, index;
};

/* Of floats, a NaN comes before every number. */
#define ARITH_LEADS(id, T)                                                     \
    NUMBER int id##_is_less(T a, T b)                                          \
    {                                                                          \
        return (a < b) | ((a != a) & (b == b));                                \
    }                                                                          \
    NUMBER int id##_is_more(T a, T b)                                          \
    {                                                                          \
        return (a > b) | ((a != a) & (b == b));                                \
    }                                                                          \
    NUMBER int id##_ties(T a, T b) { return (a == b) | ((a != a) & (b != b)); }

ARITH_LEADS(f32, float)
ARITH_LEADS(f64, double)

NUMBER int i32_is_less(int32_t a, int32_t b) { return a < b; }
NUMBER int i32_is_more(int32_t a, int32_t b) { return a > b; }
NUMBER int i32_ties(int32_t a, int32_t b) { return a == b; }

NUMBER int f32_is_negative(float x) { return (int)(f32_bits(x) >> 31); }
NUMBER int f64_is_negative(double x) { return (int)(f64_bits(x) >> 63); }
NUMBER int i32_is_negative(int32_t x) { return x < 0; }

/* A NaN without sign and payload. */
NUMBER float f32_quiet(float x) { return x == x ? x : f32_from(0x7fc00000); }
NUMBER double f64_quiet(double x)
{
    return x == x ? x : f64_from(0x7ff8000000000000);
}
NUMBER int32_t i32_quiet(int32_t x) { return x; }

/* The pairs of a type are in a total order, up to the bits of a NaN: by value, then by
 * index, then by sign, which differs for zeros alone.  The first one is the result. */
#define ARITH_LOC(name, id, leads, is_first)                                   \
    NUMBER struct id##_i32 id##_i32_##name(struct id##_i32 a,                  \
                                           struct id##_i32 b)                  \
    {                                                                          \
        int by_index =                                                         \
            (a.index < b.index) | ((a.index == b.index) & (is_first));         \
        int is_a = id##_##leads(a.value, b.value) |                            \
                   (id##_ties(a.value, b.value) & by_index);                   \
                                                                               \
        return (struct id##_i32){.value =                                      \
                                     id##_quiet(is_a ? a.value : b.value),     \
                                 .index = is_a ? a.index : b.index};           \
    }

#define ARITH_PAIR(id)                                                         \
    ARITH_LOC(minloc, id, is_less, id##_is_negative(a.value))                  \
    ARITH_LOC(maxloc, id, is_more, !id##_is_negative(a.value))

ARITH_PAIR(f32)
ARITH_PAIR(f64)
ARITH_PAIR(i32)

#endif
