/* SPDX-License-Identifier: BSD-3-Clause */
/* element.c - elements one at a time, in plain C. */
#include "tests/support/element.h"
#include "lib/device/arith.h"
#include "lib/util/util.h"

#include <math.h>
#include <string.h>

uint64_t random_bits(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* ---- narrow floats by exact arithmetic in double ------------------------- */

const struct format f16 = {10, -14, 15, 0x8000, 0};
const struct format bf16 = {7, -126, 127, 0x8000, 0};
const struct format f8e4m3 = {3, -6, 7, 0x80, 1};
const struct format f8e5m2 = {2, -14, 15, 0x80, 0};

double decode(struct format f, unsigned bits)
{
    unsigned fraction = bits & ((1u << f.places) - 1);
    int exponent = (int)(bits >> f.places) & (2 * f.bias + 1);
    double sign = bits & f.sign ? -1 : 1;

    if (f.is_finite ? (bits & (f.sign - 1)) == f.sign - 1
                    : exponent == 2 * f.bias + 1)
        return fraction ? NAN : sign * INFINITY;
    if (!exponent)
        return sign * ldexp(fraction, f.least - f.places);
    return sign *
           ldexp(fraction + (1u << f.places), exponent - f.bias - f.places);
}

unsigned encode(struct format f, double x)
{
    unsigned sign = signbit(x) ? f.sign : 0, one = 1u << f.places;
    unsigned beyond =
        f.is_finite ? f.sign - 1 : (unsigned)(2 * f.bias + 1) << f.places;
    unsigned bits;
    int exponent;
    double units;

    if (isinf(x))
        return sign | beyond;
    frexp(x, &exponent);
    exponent = x == 0 || exponent - 1 < f.least ? f.least : exponent - 1;
    if (exponent > f.bias + 1)
        return sign | beyond;
    units = nearbyint(ldexp(fabs(x), f.places - exponent));
    bits = (unsigned)(exponent - f.least) * one + (unsigned)units;
    return sign | (bits < beyond ? bits : beyond);
}

int is_nan_bits(struct format f, unsigned bits)
{
    return isnan(decode(f, bits));
}

static const struct format *format_of(enum coll_type type)
{
    switch (type) {
    case COLL_F16:
        return &f16;
    case COLL_BF16:
        return &bf16;
    case COLL_F8E4M3:
        return &f8e4m3;
    case COLL_F8E5M2:
        return &f8e5m2;
    default:
        return NULL;
    }
}

/* ---- reductions, by type ------------------------------------------------ */

static uint64_t wrap(uint64_t a, uint64_t b, enum coll_op op)
{
    switch (op) {
    case COLL_PROD:
        return a * b;
    case COLL_BAND:
        return a & b;
    case COLL_BOR:
        return a | b;
    case COLL_BXOR:
        return a ^ b;
    case COLL_LAND:
        return a && b;
    case COLL_LOR:
        return a || b;
    case COLL_LXOR:
        return !a != !b;
    default:
        return a + b;
    }
}

#define ORACLE_INTEGER(id, T)                                                  \
    static void oracle_##id(void *dst, const void *src, enum coll_op op)       \
    {                                                                          \
        T a, b, least, most;                                                   \
                                                                               \
        memcpy(&a, dst, sizeof(T));                                            \
        memcpy(&b, src, sizeof(T));                                            \
        least = a < b ? a : b;                                                 \
        most = a < b ? b : a;                                                  \
        a = op == COLL_MIN   ? least                                           \
            : op == COLL_MAX ? most                                            \
                             : (T)wrap((uint64_t)a, (uint64_t)b, op);          \
        memcpy(dst, &a, sizeof(T));                                            \
    }

ORACLE_INTEGER(I8, int8_t)
ORACLE_INTEGER(U8, uint8_t)
ORACLE_INTEGER(I16, int16_t)
ORACLE_INTEGER(U16, uint16_t)
ORACLE_INTEGER(I32, int32_t)
ORACLE_INTEGER(U32, uint32_t)
ORACLE_INTEGER(I64, int64_t)
ORACLE_INTEGER(U64, uint64_t)

/* -0 < +0, and a NaN wins. */
static double least_of(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static double float_op(double a, double b, enum coll_op op)
{
    switch (op) {
    case COLL_PROD:
        return a * b;
    case COLL_MIN:
        return least_of(a, b);
    case COLL_MAX:
        return -least_of(-a, -b);
    case COLL_LAND:
        return isnan(a) ? isnan(b) || b : a && (isnan(b) || b);
    case COLL_LOR:
        return isnan(a) || isnan(b) || a || b;
    case COLL_LXOR:
        return (isnan(a) || a) != (isnan(b) || b);
    default:
        return a + b;
    }
}

static void oracle_F64(void *dst, const void *src, enum coll_op op)
{
    double a, b;

    memcpy(&a, dst, sizeof(a));
    memcpy(&b, src, sizeof(b));
    a = float_op(a, b, op);
    memcpy(dst, &a, sizeof(a));
}

/* In double: one more rounding, harmless as 53 >= 2 * 24 + 2. */
static void oracle_F32(void *dst, const void *src, enum coll_op op)
{
    float a, b;

    memcpy(&a, dst, sizeof(a));
    memcpy(&b, src, sizeof(b));
    a = (float)float_op((double)a, (double)b, op);
    memcpy(dst, &a, sizeof(a));
}

static void oracle_narrow(enum coll_type type, void *dst, const void *src,
                          enum coll_op op)
{
    const struct format *f = format_of(type);
    size_t size = coll_type_size(type);
    uint16_t a = 0, b = 0;
    double x;

    memcpy(&a, dst, size);
    memcpy(&b, src, size);
    x = (double)(float)float_op(decode(*f, a), decode(*f, b), op);
    a = isnan(x) ? (uint16_t)(f->sign - 1) : (uint16_t)encode(*f, x);
    memcpy(dst, &a, size);
}

void multiply_element(enum coll_type type, void *element, const void *factor)
{
    const struct format *f = format_of(type);
    size_t size = coll_type_size(type);
    uint16_t a = 0;
    float x;

    if (!f) {
        oracles[type](element, factor, COLL_PROD);
        return;
    }
    memcpy(&a, element, size);
    memcpy(&x, factor, sizeof(x));
    x = (float)(decode(*f, a) * (double)x);
    a = isnan(x) ? (uint16_t)(f->sign - 1) : (uint16_t)encode(*f, (double)x);
    memcpy(element, &a, size);
}

#define ORACLE_NARROW(id)                                                      \
    static void oracle_##id(void *dst, const void *src, enum coll_op op)       \
    {                                                                          \
        oracle_narrow(COLL_##id, dst, src, op);                                \
    }

ORACLE_NARROW(F16)
ORACLE_NARROW(BF16)
ORACLE_NARROW(F8E4M3)
ORACLE_NARROW(F8E5M2)

static void oracle_BOOL(void *dst, const void *src, enum coll_op op)
{
    unsigned char *a = dst;
    const unsigned char *b = src;

    if (op == COLL_BXOR || op == COLL_LXOR)
        *a = !*a != !*b;
    else if (op == COLL_SUM || op == COLL_MAX || op == COLL_BOR ||
             op == COLL_LOR)
        *a = *a || *b;
    else
        *a = *a && *b;
}

/* ---- elements of two parts ------------------------------------------------- */

static double part_at(enum coll_type part, const void *at)
{
    float narrow;
    double wide;
    int32_t whole;

    if (part == COLL_I32) {
        memcpy(&whole, at, sizeof(whole));
        return whole;
    }
    memcpy(part == COLL_F32 ? (void *)&narrow : (void *)&wide, at,
           coll_type_size(part));
    return part == COLL_F32 ? (double)narrow : wide;
}

static void put_part(enum coll_type part, void *at, double x)
{
    float narrow = (float)x;
    int32_t whole = part == COLL_I32 ? (int32_t)x : 0;

    memcpy(at,
           part == COLL_I32   ? (void *)&whole
           : part == COLL_F32 ? (void *)&narrow
                              : (void *)&x,
           coll_type_size(part));
}

/* Rounded to the part's type. */
static double product(enum coll_type part, double a, double b)
{
    volatile double exact = a * b; /* never one operation with the sum */

    return part == COLL_F32 ? (double)(float)exact : exact;
}

static void oracle_complex(enum coll_type type, void *dst, const void *src,
                           enum coll_op op)
{
    enum coll_type part = part_of_type(type);
    char *to = dst;
    const char *from = src;
    size_t size = coll_type_size(part);
    double a = part_at(part, to), b = part_at(part, to + size);
    double c = part_at(part, from), d = part_at(part, from + size);

    if (op == COLL_PROD) {
        put_part(part, to, product(part, a, c) - product(part, b, d));
        put_part(part, to + size, product(part, a, d) + product(part, b, c));
    } else {
        put_part(part, to, a + c);
        put_part(part, to + size, b + d);
    }
}

/* Is the first value taken, whatever the indices are?  0 if they decide. */
static int leads(double a, double b, enum coll_op op)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && !isnan(b);
    return op == COLL_MINLOC ? a < b : a > b;
}

static void oracle_pair(enum coll_type type, void *dst, const void *src,
                        enum coll_op op)
{
    enum coll_type part = part_of_type(type);
    size_t size = coll_type_size(part);
    double a = part_at(part, dst), b = part_at(part, src);
    double i = part_at(COLL_I32, (char *)dst + size);
    double j = part_at(COLL_I32, (const char *)src + size);
    int is_other = leads(b, a, op);

    if (!leads(a, b, op) && !is_other)
        is_other = i == j ? (op == COLL_MINLOC) == (signbit(b) != 0) : j < i;
    memset(dst, 0, coll_type_size(type));
    put_part(part, dst, is_other ? b : a);
    put_part(COLL_I32, (char *)dst + size, is_other ? j : i);
}

#define ORACLE_TWO(id, of)                                                     \
    static void oracle_##id(void *dst, const void *src, enum coll_op op)       \
    {                                                                          \
        of(COLL_##id, dst, src, op);                                           \
    }

ORACLE_TWO(C64, oracle_complex)
ORACLE_TWO(C128, oracle_complex)
ORACLE_TWO(F32_I32, oracle_pair)
ORACLE_TWO(F64_I32, oracle_pair)
ORACLE_TWO(I32_I32, oracle_pair)

void (*const oracles[])(void *, const void *, enum coll_op) = {
#define X(id, text, bytes) oracle_##id,
    COLL_TYPE_MAP(X)
#undef X
};

/* ---- comparison -------------------------------------------------------- */

static int is_nan_at(enum coll_type type, const void *p)
{
    const struct format *f = format_of(type);
    uint64_t bits = 0;

    memcpy(&bits, p, coll_type_size(type));
    switch (type) {
    case COLL_F32:
        return isnan(f32_from((uint32_t)bits));
    case COLL_F64:
        return isnan(f64_from(bits));
    default:
        return f && is_nan_bits(*f, (unsigned)bits);
    }
}

/* Are they equal, where one NaN equals another?  The second part of a pair is no float. */
static int is_same(enum coll_type type, const char *a, const char *b)
{
    enum coll_type part = part_of_type(type);
    size_t size = coll_type_size(type), step = coll_type_size(part);

    for (size_t at = 0; at < size; at += step)
        if (memcmp(a + at, b + at, step) &&
            ((is_pair(type) && at) || !is_nan_at(part, a + at) ||
             !is_nan_at(part, b + at)))
            return 0;
    return 1;
}

size_t first_difference(enum coll_type type, const void *got, const void *want,
                        size_t count)
{
    const char *a = got, *b = want;
    size_t size = coll_type_size(type), i = 0;

    while (i < count && is_same(type, a + i * size, b + i * size))
        i++;
    return i;
}

/* Write an element, or a part of one. */
static void fill_one(enum coll_type type, char *p, uint64_t *state)
{
    static const double specials[] = {
        0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 2.5, 65504, 6e-8, 1e-40, 3};
    const struct format *f = format_of(type);
    uint64_t bits = random_bits(state);
    double x = specials[bits % ARRAY_LEN(specials)];

    if (bits >> 62 == 0) {
        if (type == COLL_F64)
            bits = f64_bits(x);
        else if (type == COLL_F32)
            bits = f32_bits((float)x);
        else if (f && !isnan(x))
            bits = encode(*f, x);
    }
    memcpy(p, &bits, coll_type_size(type));
}

/* Few values and few indices, so that there are many ties. */
static void fill_pair(enum coll_type part, char *p, uint64_t *state)
{
    static const double specials[] = {0.0, -0.0, 1, NAN, -INFINITY};
    size_t size = coll_type_size(part);
    uint64_t bits = random_bits(state);

    if (part == COLL_I32)
        put_part(part, p, (double)(bits % 4));
    else
        put_part(part, p, specials[bits % ARRAY_LEN(specials)]);
    put_part(COLL_I32, p + size, (double)(bits >> 8 & 3) - 1);
}

void fill(enum coll_type type, char *p, size_t count, uint64_t seed)
{
    enum coll_type part = part_of_type(type);
    size_t size = coll_type_size(type), step = coll_type_size(part);

    for (size_t i = 0; i < count; i++, p += size) {
        for (size_t at = 0; at < size; at += step)
            fill_one(part, p + at, &seed);
        if (is_pair(type) && seed >> 63)
            fill_pair(part, p, &seed);
    }
}

int has_no_kernel(enum coll_type type, enum coll_op op)
{
    int is_bitwise = op >= COLL_BAND && op <= COLL_BXOR;
    int is_of_pairs = op == COLL_MINLOC || op == COLL_MAXLOC;

    switch (coll__type_kind(type)) {
    case KIND_FLOAT:
        return is_bitwise || is_of_pairs;
    case KIND_BOOL:
        return op == COLL_AVG || is_of_pairs;
    case KIND_COMPLEX:
        return op != COLL_SUM && op != COLL_PROD && op != COLL_AVG;
    case KIND_PAIR:
        return !is_of_pairs;
    default:
        return is_of_pairs;
    }
}
