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

/* ---- half-width floats by exact arithmetic in double ------------------- */

const struct format f16 = {10, -14, 15}, bf16 = {7, -126, 127};

double decode(struct format f, unsigned bits)
{
    unsigned fraction = bits & ((1u << f.places) - 1);
    int exponent = (int)(bits >> f.places) & (2 * f.bias + 1);
    double sign = bits & 0x8000 ? -1 : 1;

    if (exponent == 2 * f.bias + 1)
        return fraction ? NAN : sign * INFINITY;
    if (!exponent)
        return sign * ldexp(fraction, f.least - f.places);
    return sign *
           ldexp(fraction + (1u << f.places), exponent - f.bias - f.places);
}

unsigned encode(struct format f, double x)
{
    unsigned sign = signbit(x) ? 0x8000 : 0, one = 1u << f.places;
    int exponent;
    double units;

    if (isinf(x))
        return sign | (unsigned)(2 * f.bias + 1) << f.places;
    frexp(x, &exponent);
    exponent = x == 0 || exponent - 1 < f.least ? f.least : exponent - 1;
    units = nearbyint(ldexp(fabs(x), f.places - exponent));
    if (exponent > f.bias || (exponent == f.bias && units >= 2 * one))
        return sign | (unsigned)(2 * f.bias + 1) << f.places;
    return sign | ((unsigned)(exponent - f.least) * one + (unsigned)units);
}

int is_nan_bits(struct format f, unsigned bits)
{
    return isnan(decode(f, bits));
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

static void oracle_half(struct format f, void *dst, const void *src,
                        enum coll_op op)
{
    uint16_t a, b;
    double x;

    memcpy(&a, dst, sizeof(a));
    memcpy(&b, src, sizeof(b));
    x = (double)(float)float_op(decode(f, a), decode(f, b), op);
    a = isnan(x) ? 0x7fff : (uint16_t)encode(f, x);
    memcpy(dst, &a, sizeof(a));
}

static void oracle_F16(void *dst, const void *src, enum coll_op op)
{
    oracle_half(f16, dst, src, op);
}

static void oracle_BF16(void *dst, const void *src, enum coll_op op)
{
    oracle_half(bf16, dst, src, op);
}

void (*const oracles[])(void *, const void *, enum coll_op) = {
#define X(id, text, bytes) oracle_##id,
    COLL_TYPE_MAP(X)
#undef X
};

/* ---- comparison -------------------------------------------------------- */

static int is_nan_at(enum coll_type type, const void *p)
{
    uint64_t bits = 0;

    memcpy(&bits, p, coll_type_size(type));
    switch (type) {
    case COLL_F16:
        return is_nan_bits(f16, (unsigned)bits);
    case COLL_BF16:
        return is_nan_bits(bf16, (unsigned)bits);
    case COLL_F32:
        return isnan(f32_from((uint32_t)bits));
    case COLL_F64:
        return isnan(f64_from(bits));
    default:
        return 0;
    }
}

size_t first_difference(enum coll_type type, const void *got, const void *want,
                        size_t count)
{
    const char *a = got, *b = want;
    size_t size = coll_type_size(type), i = 0;

    while (i < count &&
           (!memcmp(a + i * size, b + i * size, size) ||
            (is_nan_at(type, a + i * size) && is_nan_at(type, b + i * size))))
        i++;
    return i;
}

void fill(enum coll_type type, char *p, size_t count, uint64_t seed)
{
    static const double specials[] = {
        0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 2.5, 65504, 6e-8, 1e-40, 3};
    size_t size = coll_type_size(type);

    for (size_t i = 0; i < count; i++, p += size) {
        uint64_t bits = random_bits(&seed);
        double x = specials[bits % ARRAY_LEN(specials)];

        if (bits >> 62 == 0) {
            if (type == COLL_F64)
                bits = f64_bits(x);
            else if (type == COLL_F32)
                bits = f32_bits((float)x);
            else if (type == COLL_F16 && !isnan(x))
                bits = encode(f16, x);
            else if (type == COLL_BF16 && !isnan(x))
                bits = encode(bf16, x);
        }
        memcpy(p, &bits, size);
    }
}

int has_no_kernel(enum coll_type type, enum coll_op op)
{
    return type >= COLL_F16 && op >= COLL_BAND && op <= COLL_BXOR;
}
