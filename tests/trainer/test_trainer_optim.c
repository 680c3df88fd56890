/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_optim.c - optimizers by their formulas, and numbers of 16 bits. */
#include "tests/support/suite.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/optim.h"
#include "trainer/wire.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- optimizers ---- */

/* Make a step of all parameters. */
static void optim_step(struct optim *o, float *p, const float *g)
{
    o->step++;
    device_cpu.step(
        o, &(struct optim_part){.n = o->n, .params = p, .gradients = g});
}

START_TEST(sgd_moves_as_by_hand)
{
    struct optim o = {.kind = OPTIM_SGD, .lr = 0.1, .momentum = 0.9f};
    float p[2] = {1, -2}, g[2] = {0.5f, -1};

    ck_assert_int_eq(optim_init(&o, &device_cpu, 2), 0);
    optim_step(&o, p, g); /* v = .5, -1 */
    ck_assert_float_eq_tol(p[0], 0.95f, 1e-6);
    ck_assert_float_eq_tol(p[1], -1.9f, 1e-6);
    optim_step(&o, p, g); /* v = .95, -1.9 */
    ck_assert_float_eq_tol(p[0], 0.855f, 1e-6);
    ck_assert_float_eq_tol(p[1], -1.71f, 1e-6);
    ck_assert_uint_eq(o.step, 2);
    optim_fini(&o);
}
END_TEST

/* torch.optim.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.5) by its
 * documentation, in double: b = m b + g, and the step is lr (g + m b), from the
 * first step on; and Sutskever's form of the same, in which the parameters are seen
 * where they look ahead to. */
START_TEST(nesterov_moves_as_torch_says)
{
    struct optim o = {.kind = OPTIM_SGD,
                      .lr = 0.1,
                      .momentum = 0.9f,
                      .nesterov = 1,
                      .weight_decay = 0.5f};
    double want = 1, buffer = 0, place = 1, speed = 0;
    float p[2] = {1, 1}, g[2] = {0.5f, 0};

    ck_assert_int_eq(optim_init(&o, &device_cpu, 2), 0);
    for (int i = 0; i < 10; i++) {
        double ahead = place + 0.9 * speed;
        double gradient = 0.5 + 0.5 * want;

        buffer = 0.9 * buffer + gradient;
        want -= 0.1 * (gradient + 0.9 * buffer);
        speed = 0.9 * speed - 0.1 * (0.5 + 0.5 * ahead);
        place += speed;
        g[0] = 0.5f;
        optim_step(&o, p, g);
        ck_assert_double_eq_tol((double)p[0], want, 1e-6);
        ck_assert_double_eq_tol((double)p[0], place + 0.9 * speed, 1e-6);
        if (i == 0) /* 1 - 0.1 (1 + 0.9) */
            ck_assert_double_eq_tol((double)p[0], 0.81, 1e-6);
    }
    ck_assert_double_gt((double)p[1], (double)p[0]);
    optim_fini(&o);
}
END_TEST

/* The rule as the paper writes it, in double, over 19 parameters (vectors and
 * a rest) and 30 steps. */
START_TEST(adam_moves_as_the_paper_says)
{
    struct optim o = {.kind = OPTIM_ADAM,
                      .lr = 0.01,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .epsilon = 1e-7f};
    double want[19], mean[19] = {0}, square[19] = {0};
    float p[19], g[19];

    ck_assert_int_eq(optim_init(&o, &device_cpu, 19), 0);
    for (int i = 0; i < 19; i++)
        want[i] = p[i] = (float)i / 7;
    for (int t = 1; t <= 30; t++) {
        for (int i = 0; i < 19; i++) {
            g[i] = (float)sin(t + i) * (i == 4 ? 1e-4f : 1);
            mean[i] = 0.9 * mean[i] + 0.1 * (double)g[i];
            square[i] = 0.999 * square[i] + 0.001 * (double)(g[i] * g[i]);
            want[i] -= 0.01 * mean[i] / (1 - pow(0.9, t)) /
                       (sqrt(square[i] / (1 - pow(0.999, t))) + 1e-7);
        }
        optim_step(&o, p, g);
    }
    for (int i = 0; i < 19; i++)
        ck_assert_double_eq_tol((double)p[i], want[i], 1e-5);
    optim_fini(&o);
}
END_TEST

/* _i: sgd, adam, adagrad, or Nesterov's sgd.  Every cut of 21 parameters in two. */
START_TEST(row21_a_step_in_parts_has_the_bits_of_a_whole_one)
{
    for (size_t cut = 0; cut <= 21; cut++) {
        struct optim o[2];
        float p[2][21], g[21];

        for (int k = 0; k < 2; k++) {
            o[k] = (struct optim){.kind = (enum optim_kind)(_i % 3),
                                  .nesterov = _i == 3,
                                  .lr = 0.01,
                                  .momentum = 0.9f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.999f,
                                  .epsilon = 1e-7f,
                                  .weight_decay = 0.1f};
            ck_assert_int_eq(optim_init(&o[k], &device_cpu, 21), 0);
            for (int i = 0; i < 21; i++)
                p[k][i] = (float)i / 7;
        }
        for (int t = 0; t < 3; t++) {
            struct optim_part a = {0, cut, p[1], g, NULL};
            struct optim_part b = {cut, 21 - cut, p[1] + cut, g + cut, NULL};

            for (int i = 0; i < 21; i++)
                g[i] = (float)sin(t + i);
            optim_step(&o[0], p[0], g);
            o[1].step++;
            device_cpu.step(&o[1], &b);
            device_cpu.step(&o[1], &a);
        }
        ck_assert_mem_eq(p[0], p[1], sizeof(p[0]));
        ck_assert_mem_eq(o[0].state, o[1].state, o[0].n_state * sizeof(float));
        optim_fini(&o[0]);
        optim_fini(&o[1]);
    }
}
END_TEST

/* Against PyTorch 1.13's torch.optim.Adagrad(lr=0.1, weight_decay=0.5). */
START_TEST(adagrad_with_weight_decay_goes_the_way_of_torch)
{
    const float g[2] = {0.5f, -3};
    float p[2] = {1, 2};
    struct optim o = {.kind = OPTIM_ADAGRAD,
                      .lr = 0.1,
                      .epsilon = 1e-10f,
                      .weight_decay = 0.5f};

    ck_assert_int_eq(optim_init(&o, &device_cpu, 2), 0);
    for (int i = 0; i < 3; i++)
        optim_step(&o, p, g);
    ck_assert_double_eq_tol((double)p[0], 0.775821515, 1e-6);
    ck_assert_double_eq_tol((double)p[1], 2.226356670, 1e-6);
    optim_fini(&o);
}
END_TEST

/* As --clip-norm with ZeRO adds them up. */
START_TEST(squares_have_the_same_bits_in_parts)
{
    float values[1000];
    double whole = 0, parts = 0;

    for (int i = 0; i < 1000; i++)
        values[i] = 1 / (float)(i + 1);
    device_cpu.squares(values, 1000, &whole);
    for (size_t at = 0; at < 1000; at += 125)
        device_cpu.squares(values + at, 125, &parts);
    ck_assert_double_eq(parts, whole);
    ck_assert_double_eq_tol(whole, 1.643934567, 1e-6);
}
END_TEST

/* ---- 16 bits ---- */

/* All numbers of 16 bits are what they are after a way there and back; and what
 * lies between two goes to the nearer one, from a place in the list at which
 * the processor's conversion and ours take turns. */
START_TEST(row22_numbers_of_16_bits_keep_their_bits)
{
    for (int w = WIRE_F16; w <= WIRE_BF16; w++)
        for (unsigned h = 0; h < 65536; h++) {
            uint16_t one[9], back[9];
            float x[9];

            for (int i = 0; i < 9; i++)
                one[i] = (uint16_t)h;
            wire_unpack((enum wire)w, one, x, 9);
            wire_pack((enum wire)w, x, back, 9);
            if (isnan(x[0])) {
                ck_assert(isnan(x[8]));
                wire_unpack((enum wire)w, back, x, 9);
                ck_assert(isnan(x[0]) && isnan(x[8]));
                continue;
            }
            ck_assert_float_eq(x[0], x[8]);
            ck_assert_uint_eq(back[0], h);
            ck_assert_uint_eq(back[8], h);
        }
}
END_TEST

START_TEST(row22_rounding_goes_to_the_nearest)
{
    static const struct {
        float from, f16, bf16;
    } cases[] = {
        {1.0f + 0x1p-11f, 1, 1},                /* a tie, to even */
        {1.0f + 0x1.8p-10f, 1.0f + 0x1p-9f, 1}, /* the same, upwards */
        {1.0f + 0x1p-8f, 1.0f + 0x1p-8f, 1},
        {1.0f + 0x1.8p-7f, 1.0f + 0x1.8p-7f, 1.0f + 0x1p-6f},
        {65519, 65504, 65536},
        {65520, INFINITY, 65536},
        {-1e30f, -INFINITY, -0x1.94p99f},
        {0x1p-24f, 0x1p-24f, 0x1p-24f},
        {0x1p-25f, 0, 0x1p-25f},
        {0x1.8p-25f, 0x1p-24f, 0x1.8p-25f},
        {-0x1.001p-14f, -0x1p-14f, -0x1p-14f},
        {3.4e38f, INFINITY, INFINITY},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int w = WIRE_F16; w <= WIRE_BF16; w++) {
            float x[9];
            uint16_t h[9];

            for (int k = 0; k < 9; k++)
                x[k] = cases[i].from;
            wire_pack((enum wire)w, x, h, 9);
            wire_unpack((enum wire)w, h, x, 9);
            for (int k = 0; k < 9; k += 8)
                ck_assert_msg(
                    x[k] == (w == WIRE_F16 ? cases[i].f16 : cases[i].bf16),
                    "case %zu, type %d, place %d: %a", i, w, k, (double)x[k]);
        }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_optim");
    TCase *optim = suite_case(suite, "optim", 300);

    tcase_add_test(optim, sgd_moves_as_by_hand);
    tcase_add_test(optim, nesterov_moves_as_torch_says);
    tcase_add_test(optim, adam_moves_as_the_paper_says);
    tcase_add_loop_test(
        optim, row21_a_step_in_parts_has_the_bits_of_a_whole_one, 0, 4);
    tcase_add_test(optim, adagrad_with_weight_decay_goes_the_way_of_torch);
    tcase_add_test(optim, squares_have_the_same_bits_in_parts);
    tcase_add_test(optim, row22_numbers_of_16_bits_keep_their_bits);
    tcase_add_test(optim, row22_rounding_goes_to_the_nearest);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
