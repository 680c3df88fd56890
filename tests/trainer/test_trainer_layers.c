/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_layers.c - every layer against plain loops (forward) and finite
 * differences (backward). */
#include "tests/trainer/trainer_layer.h"
#include "tests/support/suite.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/onednn.h"
#include "trainer/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One output of a convolution, by the formula. */
static double conv_at(const struct bench *b, int n, int o, int y, int x)
{
    const struct layer *l = &b->layer;
    double sum = l->n_biases ? (double)l->biases[o] : 0;
    int side = l->spec.kernel;

    for (int i = 0; i < l->in.channels; i++)
        for (int k = 0; k < side * side; k++) {
            int from_y = y * layer_stride(l) + k / side - l->spec.pad;
            int from_x = x * layer_stride(l) + k % side - l->spec.pad;
            size_t w = (size_t)((o * l->in.channels + i) * side * side + k);

            if (from_y >= 0 && from_y < l->in.height && from_x >= 0 &&
                from_x < l->in.width)
                sum += (double)l->weights[w] *
                       (double)b->in[layer_place(&l->in, n, i, from_y, from_x)];
        }
    return l->spec.relu && sum < 0 ? 0 : sum;
}

static void check_conv_forward(struct bench *b)
{
    const struct shape *s = &b->layer.out;

    bench_value(b);
    for (int n = 0; n < CHUNK; n++)
        for (int c = 0; c < s->channels; c++)
            for (int y = 0; y < s->height; y++)
                for (int x = 0; x < s->width; x++)
                    ck_assert_double_eq_tol(
                        (double)b->out[layer_place(s, n, c, y, x)],
                        conv_at(b, n, c, y, x), 1e-4);
}

/* ---- layers ---- */

START_TEST(the_image_convolution_follows_its_formula_and_gradients)
{
    struct layer_spec spec = {
        .kind = LAYER_CONV, .kernel = 3, .units = 32, .relu = _i};
    struct bench b;

    bench_init(&b, &spec, (struct shape){1, 9, 7, 1});
    check_conv_forward(&b);
    bench_check(&b, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(the_convolution_follows_its_formula_and_gradients)
{
    struct layer_spec spec = {.kind = LAYER_CONV, .kernel = 3, .units = 64};
    struct bench b;

    bench_init(&b, &spec, (struct shape){32, 8, 10, layer_block(32)});
    check_conv_forward(&b);
    bench_check(&b, 1);
    bench_fini(&b);
}
END_TEST

/* Windows of every kind that a model has, and some that none has. */
static const struct {
    struct layer_spec spec;
    struct shape in;
    int is_point; /* one window holds the whole map */
} windows[] = {
    {{.units = 10, .kernel = 5}, {1, 9, 8, 1}, 0},
    {{.units = 20, .kernel = 5}, {10, 7, 6, 10}, 0},
    {{.units = 16, .kernel = 7, .stride = 2, .pad = 3, .no_bias = 1},
     {3, 11, 10, 3},
     0},
    {{.units = 8, .kernel = 3, .stride = 2, .pad = 1, .relu = 1},
     {3, 8, 9, 3},
     0},
    {{.units = 24, .kernel = 3, .pad = 1, .relu = 1}, {16, 5, 4, 16}, 0},
    {{.units = 32, .kernel = 1, .stride = 2, .no_bias = 1}, {16, 6, 5, 16}, 0},
    {{.units = 32, .kernel = 3, .pad = 1, .no_bias = 1}, {32, 1, 1, 32}, 1},
    {{.units = 32, .kernel = 3, .stride = 2, .pad = 1}, {16, 2, 2, 16}, 1},
    {{.units = 10, .kernel = 4, .stride = 2, .pad = 1, .relu = 1},
     {5, 3, 2, 5},
     1},
    {{.units = 16, .kernel = 2, .no_bias = 1}, {8, 2, 2, 8}, 1},
    {{.units = 16, .kernel = 1}, {24, 1, 1, 24}, 1},
    {{.units = 16, .kernel = 3, .stride = 3, .pad = 1}, {8, 3, 2, 8}, 0},
    {{.units = 16, .kernel = 1, .stride = 2}, {8, 2, 2, 8}, 0},
};

START_TEST(row30_every_window_of_a_convolution_follows_its_gradients)
{
    struct layer_spec spec = windows[_i].spec;
    struct bench b;

    spec.kind = LAYER_CONV;
    bench_init(&b, &spec, windows[_i].in);
    check_conv_forward(&b);
    bench_check(&b, 1);
    ck_assert_ptr_eq(b.layer.ops,
                     windows[_i].is_point ? &layer_conv_point : &layer_conv);
    if (!windows[_i].is_point)
        ck_assert_ptr_null(strstr(onednn_conv_kernels(b.layer.state), "ref"));
    bench_fini(&b);
}
END_TEST

static double any_pool_at(const struct bench *b, int n, int c, int y, int x)
{
    const struct layer_spec *s = &b->layer.spec;
    double best = s->relu ? 0 : -HUGE_VAL;

    for (int k = 0; k < s->kernel * s->kernel; k++) {
        int from_y = y * layer_stride(&b->layer) + k / s->kernel - s->pad;
        int from_x = x * layer_stride(&b->layer) + k % s->kernel - s->pad;

        if (from_y >= 0 && from_y < b->layer.in.height && from_x >= 0 &&
            from_x < b->layer.in.width)
            best = fmax(
                best,
                (double)b->in[layer_place(&b->layer.in, n, c, from_y, from_x)]);
    }
    return best;
}

/* _i: overlapping windows with a rim, those that leave a row out; channels that fill
 * vectors, some more, too few for one */
START_TEST(row30_pools_of_any_window_take_the_largest)
{
    static const struct layer_spec specs[] = {
        {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1},
        {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
        {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
        {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 1},
        {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1},
        {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1},
    };
    static const struct shape shapes[] = {{16, 8, 7, 16}, {8, 5, 7, 8},
                                          {10, 4, 6, 10}, {8, 5, 4, 8},
                                          {13, 7, 5, 13}, {3, 5, 6, 3}};
    const struct shape *out;
    struct bench b;

    bench_init(&b, &specs[_i], shapes[_i]);
    bench_value(&b);
    out = &b.layer.out;
    for (int n = 0; n < CHUNK; n++)
        for (int c = 0; c < out->channels; c++)
            for (int y = 0; y < out->height; y++)
                for (int x = 0; x < out->width; x++)
                    ck_assert_double_eq(
                        (double)b.out[layer_place(out, n, c, y, x)],
                        any_pool_at(&b, n, c, y, x));
    bench_check(&b, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(row30_the_mean_of_maps_follows_its_gradients)
{
    struct layer_spec spec = {.kind = LAYER_MEAN_POOL};
    double sum = 0;
    struct bench b;

    bench_init(&b, &spec, (struct shape){10, 3, 4, 10});
    bench_value(&b);
    for (size_t at = 3; at < 120; at += 10)
        sum += (double)b.in[at];
    ck_assert_double_eq_tol((double)b.out[3], sum / 12, 1e-6);
    bench_check(&b, 1);
    bench_fini(&b);
}
END_TEST

/* _i: with a relu, with a summand */
START_TEST(row30_the_norm_follows_its_gradients)
{
    struct layer_spec spec = {
        .kind = LAYER_NORM, .relu = _i % 2, .plus = _i / 2};
    double sum = 0, squares = 0, n = CHUNK * 12;
    struct bench b;

    bench_init(&b, &spec, (struct shape){16, 3, 4, 16});
    bench_check(&b, 1);
    for (size_t at = 5; at < b.n_in; at += 16)
        sum += (double)b.in[at];
    for (size_t at = 5; at < b.n_in; at += 16)
        squares += pow((double)b.in[at] - sum / n, 2);
    b.layer.running[5] = 0; /* a tenth of the way from here */
    b.layer.running[16 + 5] = 1;
    bench_value(&b);
    ck_assert_double_eq_tol((double)b.layer.running[5], sum / n / 10, 1e-6);
    ck_assert_double_eq_tol((double)b.layer.running[16 + 5],
                            1 + (squares / (n - 1) - 1) / 10, 1e-6);
    bench_fini(&b);
}
END_TEST

/* The last images of a chunk may be none, in the last step of an epoch: it is as
 * if the chunk were smaller. */
START_TEST(row30_the_norm_of_a_short_batch_is_that_of_its_images)
{
    struct layer_spec spec = {.kind = LAYER_NORM, .relu = 1};
    const struct shape in = {16, 3, 4, 16};
    size_t len = 2 * shape_len(&in);
    struct bench part, whole;

    bench_init(&part, &spec, in);
    bench_init(&whole, &spec, in);
    part.pass.n = whole.layer.chunk = 2;
    layer_fill(part.in + len, part.n_in - len, 7);
    memset(part.dout + len, 0, (part.n_out - len) * sizeof(float));
    bench_value(&part);
    bench_value(&whole);
    ck_assert_mem_eq(part.out, whole.out, len * sizeof(float));
    ck_assert_mem_eq(part.layer.running, whole.layer.running,
                     32 * sizeof(float));
    bench_backward(&part, 1);
    bench_backward(&whole, 1);
    ck_assert_mem_eq(part.din, whole.din, len * sizeof(float));
    ck_assert_mem_eq(part.layer.dweights, whole.layer.dweights,
                     32 * sizeof(float));
    for (size_t i = len; i < part.n_in; i++)
        ck_assert_float_eq(part.din[i], 0);
    bench_fini(&part);
    bench_fini(&whole);
}
END_TEST

START_TEST(dropout_of_maps_drops_whole_ones)
{
    struct layer_spec spec = {
        .kind = LAYER_DROPOUT, .rate = 0.5f, .of_maps = 1};
    int dropped = 0;
    struct bench b;

    bench_init(&b, &spec, (struct shape){20, 4, 3, 20});
    bench_value(&b);
    for (int i = 0; i < CHUNK; i++)
        for (int c = 0; c < 20; c++) {
            int is_dropped = b.out[i * 240 + c] == 0;

            dropped += is_dropped;
            for (int at = i * 240 + c; at < (i + 1) * 240; at += 20)
                ck_assert_float_eq(b.out[at], is_dropped ? 0 : 2 * b.in[at]);
        }
    ck_assert_int_gt(dropped, 15);
    ck_assert_int_lt(dropped, 45);
    bench_check(&b, 1);
    b.pass.keeps_all = 1;
    bench_value(&b);
    ck_assert_mem_eq(b.out, b.in, b.n_in * sizeof(float));
    bench_fini(&b);
}
END_TEST

static double pool_at(const struct bench *b, int n, int c, int y, int x)
{
    double best = b->layer.spec.relu ? 0 : -HUGE_VAL;

    for (int k = 0; k < 4; k++)
        best =
            fmax(best, (double)b->in[layer_place(
                           &b->layer.in, n, c, 2 * y + k / 2, 2 * x + k % 2)]);
    return best;
}

/* _i: relu or not, in blocks of 8, 16 and all channels. */
START_TEST(the_pool_takes_the_largest_and_passes_its_gradient)
{
    static const int blocks[] = {8, 16, 32};
    struct layer_spec spec = {
        .kind = LAYER_MAX_POOL, .kernel = 2, .relu = _i / 3};
    struct bench b;

    bench_init(&b, &spec, (struct shape){32, 6, 4, blocks[_i % 3]});
    bench_value(&b);
    for (int n = 0; n < CHUNK; n++)
        for (int c = 0; c < 32; c++)
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 2; x++)
                    ck_assert_double_eq(
                        (double)b.out[layer_place(&b.layer.out, n, c, y, x)],
                        pool_at(&b, n, c, y, x));
    bench_check(&b, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(equal_values_in_a_window_share_one_gradient_not_four)
{
    struct layer_spec spec = {.kind = LAYER_MAX_POOL, .kernel = 2};
    double in = 0, out = 0;
    struct bench b;

    bench_init(&b, &spec, (struct shape){8, 4, 4, 8});
    for (size_t i = 0; i < b.n_in; i++)
        b.in[i] = 0.5f;
    bench_backward(&b, 1);
    for (size_t i = 0; i < b.n_in; i++)
        in += (double)b.din[i];
    for (size_t i = 0; i < b.n_out; i++)
        out += (double)b.dout[i];
    ck_assert_double_eq_tol(in, out, 1e-5);
    bench_fini(&b);
}
END_TEST

START_TEST(the_dense_layer_follows_its_formula_and_gradients)
{
    struct layer_spec spec = {.kind = LAYER_DENSE, .units = 19, .relu = _i};
    struct bench b;

    bench_init(&b, &spec, (struct shape){8, 3, 2, 8});
    bench_value(&b);
    for (int n = 0; n < CHUNK; n++)
        for (int o = 0; o < 19; o++) {
            double sum = (double)b.layer.biases[o];

            for (int i = 0; i < 48; i++)
                sum += (double)b.in[n * 48 + i] *
                       (double)b.layer.weights[i * 19 + o];
            ck_assert_double_eq_tol((double)b.out[n * 19 + o],
                                    _i && sum < 0 ? 0 : sum, 1e-5);
        }
    bench_check(&b, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(dropout_drops_its_part_and_keeps_the_mean)
{
    struct layer_spec spec = {.kind = LAYER_DROPOUT, .rate = 0.25f};
    size_t dropped = 0;
    struct bench b;

    bench_init(&b, &spec, (struct shape){32, 24, 24, 32});
    bench_value(&b);
    for (size_t i = 0; i < b.n_out; i++) {
        dropped += b.out[i] == 0;
        if (b.out[i] != 0)
            ck_assert_float_eq_tol(b.out[i], b.in[i] / 0.75f, 1e-6);
    }
    ck_assert_double_eq_tol((double)dropped / (double)b.n_out, 0.25, 0.01);
    bench_check(&b, 1);
    b.pass.is_training = 0;
    bench_value(&b);
    ck_assert_mem_eq(b.out, b.in, b.n_in * sizeof(float));
    bench_fini(&b);
}
END_TEST

/* Image 2 of a pass that begins at 5 is image 0 of one that begins at 7. */
START_TEST(what_dropout_drops_depends_on_the_place_in_the_batch)
{
    struct layer_spec spec = {.kind = LAYER_DROPOUT, .rate = 0.5f};
    float kept[64];
    struct bench b;

    bench_init(&b, &spec, (struct shape){64, 1, 1, 64});
    for (size_t i = 0; i < b.n_in; i++)
        b.in[i] = 1;
    bench_value(&b);
    memcpy(kept, b.out + 2 * 64, sizeof(kept));
    ck_assert_mem_ne(kept, b.out, sizeof(kept));
    b.pass.first = 7;
    bench_value(&b);
    ck_assert_mem_eq(kept, b.out, sizeof(kept));
    b.pass.key++;
    bench_value(&b);
    ck_assert_mem_ne(kept, b.out, sizeof(kept));
    bench_fini(&b);
}
END_TEST

/* ---- what is no number ---- */

static int has_nan(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return 1;
    return 0;
}

/* Make values[i] NaN for some i: out must tell. */
static void plant_nan(struct bench *b, float *values, size_t n,
                      const char *what)
{
    for (size_t i = 0; i < n; i += n / PROBES + 1) {
        float was = values[i];

        values[i] = NAN;
        bench_value(b);
        values[i] = was;
        ck_assert_msg(has_nan(b->out, b->n_out), "%s hides a NaN in %s[%zu]",
                      b->layer.ops->name, what, i);
    }
    bench_value(b);
    ck_assert(!has_nan(b->out, b->n_out));
}

/* A relu or a pool that made 0 of it would hide it from the loss. */
START_TEST(no_layer_hides_what_is_no_number)
{
    int block = layer_block(32);
    const struct {
        struct layer_spec spec;
        struct shape in;
    } cases[] = {
        {{.kind = LAYER_CONV, .kernel = 3, .units = 32, .relu = 1},
         {1, 9, 7, 1}},
        {{.kind = LAYER_CONV, .kernel = 3, .units = 32}, {1, 9, 7, 1}},
        {{.kind = LAYER_CONV, .kernel = 3, .units = 64}, {32, 8, 10, block}},
        {{.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1}, {32, 6, 4, 8}},
        {{.kind = LAYER_MAX_POOL, .kernel = 2}, {32, 6, 4, 16}},
        {{.kind = LAYER_DENSE, .units = 19, .relu = 1}, {8, 3, 2, 8}},
        {{.kind = LAYER_DENSE, .units = 19}, {8, 3, 2, 8}},
        {{.kind = LAYER_DROPOUT, .rate = 0.5f}, {32, 6, 4, 32}},
        {{.kind = LAYER_DROPOUT, .rate = 0.5f}, {10, 1, 1, 10}},
        {{.kind = LAYER_CONV, .units = 8, .kernel = 3, .pad = 1, .relu = 1},
         {3, 5, 4, 3}},
        {{.kind = LAYER_MAX_POOL,
          .kernel = 3,
          .stride = 2,
          .pad = 1,
          .relu = 1},
         {8, 5, 4, 8}},
        {{.kind = LAYER_CONV, .units = 8, .kernel = 2, .relu = 1},
         {8, 2, 2, 8}},
        {{.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1}, {13, 4, 6, 13}},
        {{.kind = LAYER_MAX_POOL, .kernel = 2}, {3, 4, 6, 3}},
        {{.kind = LAYER_MEAN_POOL}, {10, 3, 4, 10}},
        {{.kind = LAYER_NORM, .relu = 1}, {8, 5, 4, 8}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench b;

        bench_init(&b, &cases[i].spec, cases[i].in);
        b.pass.is_training = 0; /* in training dropout may drop it */
        plant_nan(&b, b.in, b.n_in, "in");
        plant_nan(&b, b.layer.weights, b.layer.n_weights, "weights");
        plant_nan(&b, b.layer.biases, b.layer.n_biases, "biases");
        bench_fini(&b);
    }
}
END_TEST

static void set_up(void)
{
    ck_assert_msg(!onednn_init(1), "%s", train_error());
}

static void tear_down(void) { onednn_fini(); }

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_layers");
    TCase *layers = suite_case(suite, "layers", 300);

    tcase_add_checked_fixture(layers, set_up, tear_down);
    tcase_add_loop_test(layers,
                        the_image_convolution_follows_its_formula_and_gradients,
                        0, 2);
    tcase_add_test(layers, the_convolution_follows_its_formula_and_gradients);
    tcase_add_loop_test(layers,
                        row30_every_window_of_a_convolution_follows_its_gradients,
                        0, (int)(sizeof(windows) / sizeof(windows[0])));
    tcase_add_loop_test(layers, row30_pools_of_any_window_take_the_largest, 0,
                        6);
    tcase_add_test(layers, row30_the_mean_of_maps_follows_its_gradients);
    tcase_add_loop_test(layers, row30_the_norm_follows_its_gradients, 0, 4);
    tcase_add_test(layers,
                   row30_the_norm_of_a_short_batch_is_that_of_its_images);
    tcase_add_test(layers, dropout_of_maps_drops_whole_ones);
    tcase_add_loop_test(layers, the_pool_takes_the_largest_and_passes_its_gradient,
                        0, 6);
    tcase_add_test(layers, equal_values_in_a_window_share_one_gradient_not_four);
    tcase_add_loop_test(layers, the_dense_layer_follows_its_formula_and_gradients,
                        0, 2);
    tcase_add_test(layers, dropout_drops_its_part_and_keeps_the_mean);
    tcase_add_test(layers,
                   what_dropout_drops_depends_on_the_place_in_the_batch);
    tcase_add_test(layers, no_layer_hides_what_is_no_number);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
