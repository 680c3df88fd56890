/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reduce.c - each kernel of each instruction set against plain C. */
#include "tests/support/element.h"
#include "tests/support/kernel_cases.h"
#include "tests/support/suite.h"
#include "lib/device/reduce.h"
#include "lib/type/half.h"
#include "lib/type/op.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_equal(enum coll_type type, const char *got, const char *want,
                        size_t count, const char *what)
{
    size_t i = first_difference(type, got, want, count);

    ck_assert_msg(i == count, "%s %s: element %zu of %zu", what,
                  coll_type_name(type), i, count);
}

/* One reduction of count elements; b begins b_at bytes into its buffer. */
struct reduction {
    const struct coll__kernels *kernels;
    enum coll_type type;
    enum coll_op op;
    size_t count, b_at;
    enum kernel_target target;
};

/* The operands and the elements beside the result stay as they were. */
static void check_reduction(const struct reduction *r)
{
    size_t size = coll_type_size(r->type), len = r->count * size;
    size_t room = len + 2 * size;
    char *all = malloc(6 * room), *a = all + size, *b = all + room + r->b_at;
    char *own = all + 2 * room + size, *before = all + 3 * room;
    char *dst = r->target == LEFT ? a : r->target == RIGHT ? b : own;

    ck_assert(all);
    fill(r->type, all, 3 * room / size, r->count + r->b_at);
    fill(r->type, b, r->count, r->count + 77);
    memcpy(before, all, 3 * room);
    r->kernels->reduce[r->type][r->op](dst, a, b, len);
    for (size_t i = 0; i < len; i += size) {
        char *want = before + (dst - all) + i, element[16];

        memcpy(element, before + (a - all) + i, size);
        oracles[r->type](element, before + (b - all) + i, r->op);
        memcpy(want, element, size);
    }
    check_equal(r->type, dst, before + (dst - all), r->count, r->kernels->name);
    memcpy(dst, before + (dst - all), len); /* one NaN is like another */
    ck_assert_msg(!memcmp(all, before, 3 * room), "%s %s wrote elsewhere",
                  r->kernels->name, coll_type_name(r->type));
    free(all);
}

/* A message begins anywhere; a result does not. */
static void check_reduce(const struct coll__kernels *kernels,
                         enum coll_type type, enum coll_op op, size_t count)
{
    size_t size = coll_type_size(type);
    const size_t b_at[] = {0, size, 1};

    if (has_no_kernel(type, op))
        return;
    for (int target = 0; target < N_TARGETS; target++)
        for (size_t i = 0; i < (target == RIGHT ? 2 : ARRAY_LEN(b_at)); i++)
            check_reduction(&(struct reduction){
                kernels, type, op, count, b_at[i], (enum kernel_target)target});
}

/* _i: the type. */
START_TEST(every_operation_agrees_with_plain_c_in_every_set)
{
    const struct coll__kernels *kernels;
    enum coll_type type = (enum coll_type)_i;
    size_t most = getenv("TEST_LONG") ? 1000003 : 20011; /* bytes */

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (int op = 0; op < COLL_N_OPS; op++) {
            for (size_t c = 0; c < KERNEL_N_COUNTS; c++)
                check_reduce(kernels, type, (enum coll_op)op, kernel_counts[c]);
            check_reduce(kernels, type, (enum coll_op)op,
                         most / coll_type_size(type));
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
        coll__host_reduce(type, (enum coll_op)op)(c, a, b, count * size);
        coll__host_reduce(type, (enum coll_op)op)(d, b, a, count * size);
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

/* most: the greatest power of two by which inputs are divided. */
static void scale_narrow(struct format f, int most, void *p, int n)
{
    size_t size = f.sign > 0xff ? 2 : 1;
    uint16_t a = 0;
    double x;

    memcpy(&a, p, size);
    x = (double)(float)(decode(f, a) / n);
    for (int power = 1; power < n && power < most; power *= 2)
        x *= 2;
    a = isnan(x) ? (uint16_t)(f.sign - 1) : (uint16_t)encode(f, x);
    memcpy(p, &a, size);
}

static void scale_F16(void *p, int n) { scale_narrow(f16, 1 << 24, p, n); }
static void scale_BF16(void *p, int n) { scale_narrow(bf16, 1 << 24, p, n); }
static void scale_F8E4M3(void *p, int n) { scale_narrow(f8e4m3, 512, p, n); }
static void scale_F8E5M2(void *p, int n) { scale_narrow(f8e5m2, 65536, p, n); }

static void scale_C64(void *p, int n)
{
    scale_F32(p, n);
    scale_F32((float *)p + 1, n);
}

static void scale_C128(void *p, int n)
{
    scale_F64(p, n);
    scale_F64((double *)p + 1, n);
}

#define scale_BOOL NULL
#define scale_F32_I32 NULL
#define scale_F64_I32 NULL
#define scale_I32_I32 NULL

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

/* 300 ranks are more than an i8 holds, 70000 more than an i16.  Narrow floats are divided
 * by n / 2^k with the least 2^k >= n, or the type's most. */
START_TEST(scale_divides_and_truncates_towards_zero)
{
    static const int ranks[] = {1, 2, 3, 7, 64, 300, 70000};
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (size_t r = 0; r < ARRAY_LEN(ranks) && scales[_i]; r++)
            for (size_t c = 0; c < KERNEL_N_COUNTS; c++)
                check_scale(kernels, (enum coll_type)_i, kernel_counts[c],
                            ranks[r]);
}
END_TEST

/* ---- multiply ---------------------------------------------------------- */

/* Any factor, also one that lies anywhere; in place, too. */
static void check_multiply(const struct coll__kernels *kernels,
                           enum coll_type type, size_t count, uint64_t seed)
{
    size_t size = coll_type_size(type), len = count * size;
    char *in = malloc(len + size + 1), *got = malloc(len + size);
    char *want = malloc(len + 1), factor[17];

    ck_assert(in && got && want);
    fill(type, in + 1, count, seed);
    fill(coll__factor_type(type), factor + 1, 1, seed + 1);
    memcpy(want, in + 1, len);
    for (size_t i = 0; i < count; i++)
        multiply_element(type, want + i * size, factor + 1);
    memset(got + len, 0x5a, size);
    kernels->multiply[type](got, in + 1, len, factor + 1);
    check_equal(type, got, want, count, kernels->name);
    memcpy(got, in + 1, len);
    kernels->multiply[type](got, got, len, factor + 1);
    check_equal(type, got, want, count, kernels->name);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(got[len + i], 0x5a);
    free(in);
    free(got);
    free(want);
}

START_TEST(multiply_takes_any_factor)
{
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++)
        for (size_t c = 0; c < KERNEL_N_COUNTS && scales[_i]; c++)
            for (uint64_t seed = 0; seed < 20; seed++)
                check_multiply(kernels, (enum coll_type)_i, kernel_counts[c],
                               seed);
}
END_TEST

static uint16_t halve(enum coll_type type, float x)
{
    return type == COLL_F16 ? f16_narrow(x) : bf16_narrow(x);
}

static float widen(enum coll_type type, uint16_t half)
{
    return type == COLL_F16 ? f16_widen(half) : bf16_widen(half);
}

/* All numbers times 0.7, which the type has not.  Many results are not those of the factor
 * that the type has instead.  _i: the type. */
START_TEST(halves_are_multiplied_by_a_factor_in_f32)
{
    static uint16_t all[65536];
    enum coll_type type = (enum coll_type)_i;
    const struct coll__kernels *kernels;
    float factor = 0.7f, rounded = widen(type, halve(type, factor));

    for (int k = 0; (kernels = coll__kernels_at(k)); k++) {
        size_t n_others = 0;

        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            all[i] = (uint16_t)i;
        kernels->multiply[type](all, all, sizeof(all), &factor);
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            float x = widen(type, (uint16_t)i);

            if (isnan(x))
                continue;
            ck_assert_uint_eq(all[i], halve(type, x * factor));
            n_others += all[i] != halve(type, x * rounded);
        }
        ck_assert_uint_gt(n_others, 1000);
    }
}
END_TEST

/* ---- the tables -------------------------------------------------------- */

START_TEST(simd_parameter_forces_a_set)
{
    setenv("COLL_SIMD", "base", 1);
    ck_assert(coll__host_reduce(COLL_F32, COLL_SUM) ==
              coll__kernels_base.reduce[COLL_F32][COLL_SUM]);
}
END_TEST

START_TEST(the_best_set_is_taken_without_it)
{
    setenv("COLL_SIMD", "auto", 1);
    ck_assert(coll__host_reduce(COLL_F32, COLL_SUM) ==
              coll__kernels_at(0)->reduce[COLL_F32][COLL_SUM]);
    ck_assert(coll__host_scale(COLL_I64) ==
              coll__kernels_at(0)->scale[COLL_I64]);
    ck_assert(coll__host_multiply(COLL_F16) ==
              coll__kernels_at(0)->multiply[COLL_F16]);
}
END_TEST

/* Each time costs tens of microseconds in a virtual machine. */
START_TEST(the_processor_is_asked_once)
{
    ck_assert_int_eq(coll__kernels_n_choices(), 0);
    for (int i = 0; i < 100; i++) {
        coll__host_reduce(COLL_F32, COLL_SUM);
        coll__host_scale(COLL_F32);
        coll__host_multiply(COLL_F32);
        coll__kernels_at(i % 3);
    }
    ck_assert_int_eq(coll__kernels_n_choices(), 1);
}
END_TEST

START_TEST(unknown_types_and_operations_have_no_kernel)
{
    ck_assert(!coll__host_reduce(COLL_N_TYPES, COLL_SUM));
    ck_assert(!coll__host_reduce(COLL_F32, COLL_N_OPS));
    ck_assert(!coll__host_scale(COLL_N_TYPES));
    ck_assert(!coll__host_multiply(COLL_N_TYPES));
}
END_TEST

/* _i: the type. */
START_TEST(there_are_kernels_for_what_is_defined)
{
    const struct coll__kernels *kernels;

    for (int k = 0; (kernels = coll__kernels_at(k)); k++) {
        ck_assert_int_eq(!kernels->scale[_i], !is_number((enum coll_type)_i));
        ck_assert_int_eq(!kernels->multiply[_i],
                         !is_number((enum coll_type)_i));
        for (int op = 0; op < COLL_N_OPS; op++)
            ck_assert_int_eq(!kernels->reduce[_i][op],
                             has_no_kernel((enum coll_type)_i,
                                           (enum coll_op)op));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reduce");
    TCase *kernels = suite_case(suite, "kernels", 120);

    tcase_add_loop_test(kernels,
                        every_operation_agrees_with_plain_c_in_every_set, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, operands_commute_bit_for_bit_for_numbers, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, scale_divides_and_truncates_towards_zero, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, multiply_takes_any_factor, 0, COLL_N_TYPES);
    tcase_add_loop_test(kernels, halves_are_multiplied_by_a_factor_in_f32,
                        COLL_F16, COLL_BF16 + 1);
    tcase_add_loop_test(kernels, there_are_kernels_for_what_is_defined, 0,
                        COLL_N_TYPES);
    tcase_add_test(kernels, simd_parameter_forces_a_set);
    tcase_add_test(kernels, the_best_set_is_taken_without_it);
    tcase_add_test(kernels, the_processor_is_asked_once);
    tcase_add_test(kernels, unknown_types_and_operations_have_no_kernel);
    return suite_run(suite);
}
