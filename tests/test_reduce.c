/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reduce.c - each kernel of each instruction set against plain C, and the
 * half-width floats against exact arithmetic. */
#include "lib/exec/number.h"
#include "lib/exec/reduce.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static uint64_t random_bits(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* ---- half-width floats by exact arithmetic in double ------------------- */

/* A format of `places` fraction bits and this least exponent. */
struct format {
    int places, least, bias;
};
static const struct format f16 = {10, -14, 15}, bf16 = {7, -126, 127};

static double decode(struct format f, unsigned bits)
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

/* To the nearest, ties to even, of a value that is no NaN. */
static unsigned encode(struct format f, double x)
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

static int is_nan_bits(struct format f, unsigned bits)
{
    return isnan(decode(f, bits));
}

static int same_float(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (isnan(a) && isnan(b));
}

/* A NaN keeps its payload and becomes quiet. */
static unsigned kept(struct format f, unsigned bits, unsigned quiet)
{
    return is_nan_bits(f, bits) ? bits | quiet : bits;
}

/* The sweeps count what is wrong; an assertion per number would take long. */
START_TEST(every_f16_widens_exactly_and_comes_back)
{
    int n_wrong = 0;

    for (unsigned bits = 0; bits < 0x10000; bits++) {
        float wide = f16_widen((uint16_t)bits);

        n_wrong += !same_float(wide, (float)decode(f16, bits));
        n_wrong += f16_narrow(wide) != kept(f16, bits, 0x200);
    }
    ck_assert_int_eq(n_wrong, 0);
}
END_TEST

START_TEST(every_bf16_widens_exactly_and_comes_back)
{
    int n_wrong = 0;

    for (unsigned bits = 0; bits < 0x10000; bits++) {
        float wide = bf16_widen((uint16_t)bits);

        n_wrong += !same_float(wide, (float)decode(bf16, bits));
        n_wrong += bf16_narrow(wide) != kept(bf16, bits, 0x40);
    }
    ck_assert_int_eq(n_wrong, 0);
}
END_TEST

/* Between neighbours: the middle, and the f32 on either side of it. */
START_TEST(narrowing_rounds_ties_to_even_between_all_neighbours)
{
    int n_wrong = 0;

    for (unsigned bits = 0; bits < 0x7c00; bits++) {
        double next = bits == 0x7bff ? 65536 : decode(f16, bits + 1);
        float middle = (float)((decode(f16, bits) + next) / 2);

        n_wrong += f16_narrow(middle) != bits + (bits & 1);
        n_wrong += f16_narrow(nextafterf(middle, 0)) != bits;
        n_wrong += f16_narrow(nextafterf(middle, INFINITY)) != bits + 1;
    }
    for (unsigned bits = 0; bits < 0x7f80; bits++) {
        float middle = f32_from(bits << 16 | 0x8000);

        n_wrong += bf16_narrow(middle) != bits + (bits & 1);
        n_wrong += bf16_narrow(nextafterf(middle, 0)) != bits;
        n_wrong += bf16_narrow(nextafterf(middle, INFINITY)) != bits + 1;
    }
    ck_assert_int_eq(n_wrong, 0);
}
END_TEST

START_TEST(narrowing_agrees_with_exact_rounding_on_random_floats)
{
    uint64_t state = 1;
    int n_wrong = 0;

    for (int i = 0; i < 1000000; i++) {
        float x = f32_from((uint32_t)random_bits(&state));

        if (isnan(x))
            continue;
        n_wrong += f16_narrow(x) != encode(f16, (double)x);
        n_wrong += bf16_narrow(x) != encode(bf16, (double)x);
    }
    ck_assert_int_eq(n_wrong, 0);
}
END_TEST

/* ---- the oracle: one element at a time, by type ------------------------ */

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

static void (*const oracles[])(void *, const void *, enum coll_op) = {
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

static void check_equal(enum coll_type type, const char *got, const char *want,
                        size_t count, const char *what)
{
    size_t size = coll_type_size(type), i = 0;

    while (i < count && (!memcmp(got + i * size, want + i * size, size) ||
                         (is_nan_at(type, got + i * size) &&
                          is_nan_at(type, want + i * size))))
        i++;
    ck_assert_msg(i == count, "%s %s: element %zu of %zu", what,
                  coll_type_name(type), i, count);
}

/* Any bits: for floats this gives NaN, infinities and tiny numbers too; every
 * fourth element is a special one. */
static void fill(enum coll_type type, char *p, size_t count, uint64_t seed)
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

static int has_no_kernel(enum coll_type type, enum coll_op op)
{
    return type >= COLL_F16 && op >= COLL_BAND && op <= COLL_BXOR;
}

static void check_reduce(const struct coll__kernels *kernels,
                         enum coll_type type, enum coll_op op, size_t count)
{
    size_t size = coll_type_size(type), len = count * size;
    char *dst, *src, *want;

    if (has_no_kernel(type, op))
        return;
    dst = malloc(len + 3 * size);
    src = malloc(len + 3 * size);
    want = malloc(len + 1);
    ck_assert(dst && src && want);
    for (size_t shift = 0; shift < 2; shift++) { /* in elements */
        char *d = dst + shift * size, *s = src + (1 - shift) * size;

        fill(type, d, count + 1, count + shift);
        fill(type, s, count + 1, count + 77);
        memcpy(want, d, len);
        for (size_t i = 0; i < count; i++)
            oracles[type](want + i * size, s + i * size, op);
        memset(d + len, 0x5a, size);
        kernels->reduce[type][op](d, s, len);
        check_equal(type, d, want, count, kernels->name);
        for (size_t i = 0; i < size; i++)
            ck_assert_int_eq(d[len + i], 0x5a);
    }
    free(dst);
    free(src);
    free(want);
}

static const size_t counts[] = {0, 1, 7, 31, 257, 1031};

/* _i: the type. */
START_TEST(every_operation_agrees_with_plain_c_in_every_set)
{
    const struct coll__kernels *kernels;
    enum coll_type type = (enum coll_type)_i;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (int op = 0; op < COLL_N_OPS; op++) {
            for (size_t c = 0; c < ARRAY_LEN(counts); c++)
                check_reduce(kernels, type, (enum coll_op)op, counts[c]);
            check_reduce(kernels, type, (enum coll_op)op,
                         1000003 / coll_type_size(type));
        }
}
END_TEST

/* Any rank may be the one whose value is on the left. */
START_TEST(operands_commute_bit_for_bit_for_numbers)
{
    enum coll_type type = (enum coll_type)_i;
    size_t size = coll_type_size(type), count = 4099;
    char *a = malloc(count * size), *b = malloc(count * size);
    char *c = malloc(count * size), *d = malloc(count * size);

    ck_assert(a && b && c && d);
    for (int op = 0; op < COLL_N_OPS; op++) {
        if (has_no_kernel(type, (enum coll_op)op))
            continue;
        fill(type, a, count, 5);
        fill(type, b, count, 6);
        memcpy(c, a, count * size);
        memcpy(d, b, count * size);
        coll__host_reduce(type, (enum coll_op)op)(c, b, count * size);
        coll__host_reduce(type, (enum coll_op)op)(d, a, count * size);
        check_equal(type, c, d, count, coll_op_name((enum coll_op)op));
    }
    free(a);
    free(b);
    free(c);
    free(d);
}
END_TEST

/* ---- scale ------------------------------------------------------------- */

#define SCALE_ORACLE(id, T, W)                                                 \
    static void scale_##id(void *p, int n)                                     \
    {                                                                          \
        T a;                                                                   \
                                                                               \
        memcpy(&a, p, sizeof(T));                                              \
        a = (T)((W)a / (W)n); /* C truncates towards 0 */                      \
        memcpy(p, &a, sizeof(T));                                              \
    }

SCALE_ORACLE(I8, int8_t, int64_t)
SCALE_ORACLE(U8, uint8_t, uint64_t)
SCALE_ORACLE(I16, int16_t, int64_t)
SCALE_ORACLE(U16, uint16_t, uint64_t)
SCALE_ORACLE(I32, int32_t, int64_t)
SCALE_ORACLE(U32, uint32_t, uint64_t)
SCALE_ORACLE(I64, int64_t, int64_t)
SCALE_ORACLE(U64, uint64_t, uint64_t)
SCALE_ORACLE(F32, float, double)
SCALE_ORACLE(F64, double, double)

static void scale_half(struct format f, void *p, int n)
{
    uint16_t a;
    double x;

    memcpy(&a, p, sizeof(a));
    x = (double)(float)(decode(f, a) / n);
    a = isnan(x) ? 0x7fff : (uint16_t)encode(f, x);
    memcpy(p, &a, sizeof(a));
}

static void scale_F16(void *p, int n) { scale_half(f16, p, n); }
static void scale_BF16(void *p, int n) { scale_half(bf16, p, n); }

static void (*const scales[])(void *, int) = {
#define X(id, text, bytes) scale_##id,
    COLL_TYPE_MAP(X)
#undef X
};

static void check_scale(const struct coll__kernels *kernels,
                        enum coll_type type, size_t count, int n)
{
    size_t size = coll_type_size(type);
    char *got = malloc((count + 2) * size), *want = malloc((count + 1) * size);

    ck_assert(got && want);
    fill(type, got + size, count, (uint64_t)n);
    memcpy(want, got + size, count * size);
    for (size_t i = 0; i < count; i++)
        scales[type](want + i * size, n);
    kernels->scale[type](got + size, count * size, n);
    check_equal(type, got + size, want, count, kernels->name);
    free(got);
    free(want);
}

/* 300 ranks are more than an i8 holds, 70000 more than an i16. */
START_TEST(scale_divides_and_truncates_towards_zero)
{
    static const int ranks[] = {1, 2, 3, 7, 64, 300, 70000};
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (size_t r = 0; r < ARRAY_LEN(ranks); r++)
            for (size_t c = 0; c < ARRAY_LEN(counts); c++)
                check_scale(kernels, (enum coll_type)_i, counts[c], ranks[r]);
}
END_TEST

/* ---- premul ------------------------------------------------------------ */

/* Any scalar, also one that lies anywhere, against the oracle of products. */
static void check_premul(const struct coll__kernels *kernels,
                         enum coll_type type, size_t count, uint64_t seed)
{
    size_t size = coll_type_size(type), len = count * size;
    char *in = malloc(len + size + 1), *got = malloc(len + size);
    char *want = malloc(len + 1), factor[9];

    ck_assert(in && got && want);
    fill(type, in + 1, count, seed);
    fill(type, factor + 1, 1, seed + 1);
    memcpy(want, in + 1, len);
    for (size_t i = 0; i < count; i++)
        oracles[type](want + i * size, factor + 1, COLL_PROD);
    memset(got + len, 0x5a, size);
    kernels->premul[type](got, in + 1, len, factor + 1);
    check_equal(type, got, want, count, kernels->name);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(got[len + i], 0x5a);
    free(in);
    free(got);
    free(want);
}

START_TEST(premul_multiplies_into_another_buffer)
{
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (size_t c = 0; c < ARRAY_LEN(counts); c++)
            for (uint64_t seed = 0; seed < 20; seed++)
                check_premul(kernels, (enum coll_type)_i, counts[c], seed);
}
END_TEST

/* ---- the tables -------------------------------------------------------- */

START_TEST(simd_parameter_forces_a_set)
{
    setenv("COLL_SIMD", "base", 1);
    ck_assert(coll__host_reduce(COLL_F32, COLL_SUM) ==
              coll__kernels_base.reduce[COLL_F32][COLL_SUM]);
    setenv("COLL_SIMD", "auto", 1);
    ck_assert(coll__host_reduce(COLL_F32, COLL_SUM) ==
              coll__kernels_at(0)->reduce[COLL_F32][COLL_SUM]);
    ck_assert(coll__host_scale(COLL_I64) ==
              coll__kernels_at(0)->scale[COLL_I64]);
    ck_assert(coll__host_premul(COLL_F16) ==
              coll__kernels_at(0)->premul[COLL_F16]);
}
END_TEST

START_TEST(unknown_types_and_operations_have_no_kernel)
{
    ck_assert(!coll__host_reduce(COLL_N_TYPES, COLL_SUM));
    ck_assert(!coll__host_reduce(COLL_F32, COLL_N_OPS));
    ck_assert(!coll__host_scale(COLL_N_TYPES));
    ck_assert(!coll__host_premul(COLL_N_TYPES));
}
END_TEST

/* _i: the type. */
START_TEST(only_the_bits_of_integers_combine)
{
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (int op = 0; op < COLL_N_OPS; op++)
            ck_assert_int_eq(!kernels->reduce[_i][op],
                             has_no_kernel((enum coll_type)_i,
                                           (enum coll_op)op));
}
END_TEST

START_TEST(host_memory_comes_in_zeroed_pages)
{
    static const size_t lens[] = {0, 1, 4097, (size_t)5 << 20};

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        const struct coll__device *host = coll__device_of("any");
        char *p = host->alloc(lens[i]);

        ck_assert_str_eq(host->name, "host");
        ck_assert(p && (uintptr_t)p % 4096 == 0);
        for (size_t at = 0; at < lens[i]; at += 1024)
            ck_assert_int_eq(p[at], 0);
        host->copy(p, "copied", min_size(lens[i], 7), NULL);
        ck_assert(lens[i] < 7 || !strcmp(p, "copied"));
        host->free(p, lens[i]);
    }
    ck_assert(!coll__device_of(NULL)->alloc(SIZE_MAX));
    ck_assert(!coll__device_of(NULL)->alloc(SIZE_MAX / 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reduce");
    TCase *half = tcase_create("half"), *kernels = tcase_create("kernels");
    SRunner *runner;
    int n_failed;

    tcase_add_test(half, every_f16_widens_exactly_and_comes_back);
    tcase_add_test(half, every_bf16_widens_exactly_and_comes_back);
    tcase_add_test(half, narrowing_rounds_ties_to_even_between_all_neighbours);
    tcase_add_test(half, narrowing_agrees_with_exact_rounding_on_random_floats);
    suite_add_tcase(suite, half);
    tcase_add_loop_test(kernels,
                        every_operation_agrees_with_plain_c_in_every_set, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, operands_commute_bit_for_bit_for_numbers, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, scale_divides_and_truncates_towards_zero, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, premul_multiplies_into_another_buffer, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, only_the_bits_of_integers_combine, 0,
                        COLL_N_TYPES);
    tcase_add_test(kernels, simd_parameter_forces_a_set);
    tcase_add_test(kernels, unknown_types_and_operations_have_no_kernel);
    tcase_add_test(kernels, host_memory_comes_in_zeroed_pages);
    tcase_set_timeout(kernels, 120);
    tcase_set_timeout(half, 120);
    suite_add_tcase(suite, kernels);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed != 0;
}
