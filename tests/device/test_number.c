/* SPDX-License-Identifier: BSD-3-Clause */
/* test_number.c - the narrow floats against exact arithmetic. */
#include "tests/support/element.h"
#include "tests/support/suite.h"
#include "lib/device/arith.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

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

START_TEST(every_f8_widens_exactly_and_comes_back)
{
    for (unsigned bits = 0; bits < 0x100; bits++) {
        float x = f8e4m3_widen((uint8_t)bits), y = f8e5m2_widen((uint8_t)bits);

        ck_assert(same_float(x, (float)decode(f8e4m3, bits)));
        ck_assert_int_eq(f8e4m3_narrow(x), bits);
        ck_assert(same_float(y, (float)decode(f8e5m2, bits)));
        ck_assert_int_eq(f8e5m2_narrow(y), kept(f8e5m2, bits, 2));
    }
}
END_TEST

/* Every f32 between two neighbours, or 1 of 61 of them. */
START_TEST(every_f32_narrows_to_the_nearest_f8)
{
    uint32_t step = getenv("TEST_LONG") ? 1 : 61, n_wrong = 0;

    for (uint32_t bits = 0; bits <= 0x7f800000; bits += step) {
        float x = f32_from(bits);

        n_wrong += f8e4m3_narrow(x) != encode(f8e4m3, (double)x);
        n_wrong += f8e5m2_narrow(-x) != encode(f8e5m2, -(double)x);
    }
    for (unsigned bits = 0; bits < 0x7c; bits++) {
        float four = (float)(decode(f8e4m3, bits) + decode(f8e4m3, bits + 1));
        float five = (float)(decode(f8e5m2, bits) +
                             (bits == 0x7b ? 65536 : decode(f8e5m2, bits + 1)));

        n_wrong += f8e4m3_narrow(four / 2) != bits + (bits & 1);
        n_wrong += f8e5m2_narrow(five / 2) != bits + (bits & 1);
    }
    ck_assert_int_eq(n_wrong, 0);
    ck_assert_int_eq(f8e4m3_narrow(464), 0x7e);
    ck_assert_int_eq(f8e4m3_narrow(nextafterf(464, 500)), 0x7f);
    ck_assert_int_eq(f8e4m3_narrow(-INFINITY), 0xff);
    ck_assert_int_eq(f8e5m2_narrow(INFINITY), 0x7c);
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

int main(void)
{
    Suite *suite = suite_create("number");
    TCase *half = suite_case(suite, "half", 120);

    tcase_add_test(half, every_f16_widens_exactly_and_comes_back);
    tcase_add_test(half, every_bf16_widens_exactly_and_comes_back);
    tcase_add_test(half, every_f8_widens_exactly_and_comes_back);
    tcase_add_test(half, every_f32_narrows_to_the_nearest_f8);
    tcase_add_test(half, narrowing_rounds_ties_to_even_between_all_neighbours);
    tcase_add_test(half, narrowing_agrees_with_exact_rounding_on_random_floats);
    return suite_run(suite);
}
