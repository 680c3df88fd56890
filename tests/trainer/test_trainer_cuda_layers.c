/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_cuda_layers.c - the kernels of layers for CUDA, compiled for the host,
 * against the processors' layers. */
#include "tests/support/suite.h"
#include "tests/trainer/trainer_kernel.h"
#include "tests/trainer/trainer_layer.h"
#include "trainer/cuda/kernels.h"
#include "trainer/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CHANNELS 17

/* Make a layer of the processors, its values such that the type can hold them. */
static void bench_make(struct bench *b, const struct layer_spec *spec,
                       struct shape in, enum kernel_type type)
{
    bench_init(b, spec, in);
    kernel_round(b->in, b->n_in, type);
    kernel_round(b->plus, b->n_out, type);
    kernel_round(b->dout, b->n_out, type);
}

/* ---- pools --------------------------------------------------------------------- */

struct pool_case {
    int height, width, kernel, stride, pad, relu, has_nan;
};

static const struct pool_case pools[] = {
    {4, 6, 2, 2, 0, 1, 0}, {7, 5, 3, 2, 1, 0, 0}, {5, 5, 3, 1, 1, 1, 1},
    {9, 7, 5, 3, 2, 0, 1}, {5, 7, 2, 3, 0, 0, 0}, {4, 4, 4, 1, 2, 1, 0},
    {3, 3, 1, 1, 0, 1, 1}, {6, 5, 5, 1, 2, 0, 1},
};

/* Few different values, so that several of a window are equal. */
static void make_equals(float *values, size_t n, int has_nan)
{
    for (size_t i = 0; i < n; i++)
        values[i] = has_nan && i % 23 == 5 ? NAN : (float)(int)(values[i] * 4);
}

static void check_pool(const struct pool_case *c, int channels,
                       enum kernel_type type)
{
    struct layer_spec spec = {.kind = LAYER_MAX_POOL,
                              .kernel = c->kernel,
                              .stride = c->stride,
                              .pad = c->pad,
                              .relu = c->relu};
    struct shape in = {channels, c->height, c->width, channels};
    float *out, *din;
    struct bench b;

    bench_make(&b, &spec, in, type);
    make_equals(b.in, b.n_in, c->has_nan);
    bench_backward(&b, 1);
    out = kernel_values(b.n_out, 7, type);
    din = kernel_values(b.n_in, 8, type);
    KERNEL("pool", type, VALUES(b.in, b.n_in), VALUES(out, b.n_out),
           WORD(channels), WORD(c->height), WORD(c->width), WORD(c->kernel),
           WORD(c->stride), WORD(c->pad), WORD(c->relu));
    kernel_same(out, b.out, b.n_out, "out");
    KERNEL("pool_back", type, VALUES(b.in, b.n_in), VALUES(out, b.n_out),
           VALUES(b.dout, b.n_out), VALUES(din, b.n_in), WORD(channels),
           WORD(c->height), WORD(c->width), WORD(c->kernel), WORD(c->stride),
           WORD(c->pad), WORD(c->relu));
    if (type == F32)
        kernel_same(din, b.din, b.n_in, "din");
    kernel_near(din, b.din, b.n_in, type, "din");
    free(out);
    free(din);
    bench_fini(&b);
}

/* _i: the window. */
START_TEST(max_pools_choose_and_give_back_as_the_processors)
{
    for (int channels = 1; channels <= MOST_CHANNELS; channels++)
        for (int type = F32; type <= BF16; type++)
            check_pool(&pools[_i], channels, (enum kernel_type)type);
}
END_TEST

static void check_mean(int channels, enum kernel_type type)
{
    struct layer_spec spec = {.kind = LAYER_MEAN_POOL};
    struct shape in = {channels, 3, 5, channels};
    float *out, *din;
    struct bench b;

    bench_make(&b, &spec, in, type);
    b.in[1] = NAN;
    bench_backward(&b, 1);
    out = kernel_values(b.n_out, 7, type);
    din = kernel_values(b.n_in, 8, type);
    KERNEL("mean", type, VALUES(b.in, b.n_in), VALUES(out, b.n_out),
           WORD(channels));
    KERNEL("mean_back", type, VALUES(b.dout, b.n_out), VALUES(din, b.n_in),
           WORD(channels));
    kernel_round(b.out, b.n_out, type);
    kernel_round(b.din, b.n_in, type);
    kernel_same(out, b.out, b.n_out, "out");
    kernel_same(din, b.din, b.n_in, "din");
    free(out);
    free(din);
    bench_fini(&b);
}

START_TEST(mean_pools_have_the_processors_bits)
{
    for (int channels = 1; channels <= MOST_CHANNELS; channels++)
        for (int type = F32; type <= BF16; type++)
            check_mean(channels, (enum kernel_type)type);
}
END_TEST

/* ---- dropout ------------------------------------------------------------------- */

/* What bench_init() sets. */
enum { KEY = 99, INDEX = 1, FIRST = 5 };

struct dropout_case {
    int channels, edge, of_maps;
    float rate;
};

static void check_dropout(const struct dropout_case *c, enum kernel_type type)
{
    struct layer_spec spec = {
        .kind = LAYER_DROPOUT, .rate = c->rate, .of_maps = c->of_maps};
    struct shape in = {c->channels, c->edge, c->edge, c->channels};
    struct train_step step = {.dropout = KEY, .first = FIRST - 2};
    int pixels = c->edge * c->edge;
    float scale = 1 / (1 - c->rate), *out;
    struct bench b;

    bench_make(&b, &spec, in, type);
    bench_value(&b);
    out = kernel_values(b.n_out, 7, type);
    if (c->of_maps)
        KERNEL("dropout_maps", type, VALUES(b.in, b.n_in), VALUES(out, b.n_out),
               ARRAY(&step, 1), WIDE(2), WORD(INDEX), WORD(c->channels),
               WORD(pixels), REAL(c->rate), REAL(scale));
    else
        KERNEL("dropout", type, VALUES(b.in, b.n_in), VALUES(out, b.n_out),
               ARRAY(&step, 1), WIDE(2), WORD(INDEX),
               WORD(c->channels * pixels), WORD((double)c->rate * 0x1p32),
               REAL(scale));
    kernel_round(b.out, b.n_out, type);
    kernel_same(out, b.out, b.n_out, "out");
    free(out);
    bench_fini(&b);
}

START_TEST(dropout_has_the_processors_masks)
{
    static const float rates[] = {0, 0.1f, 0.5f, 0.9f};

    for (int channels = 1; channels <= MOST_CHANNELS; channels++)
        for (int rate = 0; rate < 4; rate++)
            for (int what = 0; what < 4; what++) {
                struct dropout_case c = {channels, 4, what & 1, rates[rate]};

                check_dropout(&c, what >> 1 ? BF16 : F32);
            }
}
END_TEST

/* Return the number drawn for value i of the first image, as layers_dropout.c does. */
static uint32_t drawn(uint32_t i)
{
    uint64_t bits = rng_bits(rng_key(KEY, INDEX), FIRST);
    uint32_t h = (i * 0x9e3779b9u) ^ (uint32_t)bits;

    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return (h ^ h >> 16) + (uint32_t)(bits >> 32);
}

/* The rates are numbers that are drawn: also in so many values none is wrong. */
START_TEST(masks_are_right_up_to_the_last_bit)
{
    uint64_t of_maps = rng_key(rng_key(KEY, INDEX), FIRST);
    uint32_t i = 0;

    while (drawn(i) < UINT32_C(1) << 31 || drawn(i) & 0xff) /* no float */
        i++;
    ck_assert_uint_lt(i, 16 * 100 * 100);
    check_dropout(
        &(struct dropout_case){16, 100, 0, (float)(drawn(i) * 0x1p-32)}, F32);
    check_dropout(&(struct dropout_case){16, 3, 1, rng_unit(of_maps, 3)}, F32);
}
END_TEST

/* ---- batch normalization --------------------------------------------------------- */

/* The processors' layer has a multiple of 8 channels, of which the first ones count. */
enum { WHOLE = 24, PIXELS = 15, ROWS = CHUNK * PIXELS, SLICES = 5 };

/* A layer whose kernels are run. */
struct norm {
    struct bench *b;
    enum kernel_type type;
    size_t channels, n, rows; /* n: values; rows that count */
    int is_training, has_relu, has_plus;
    float *in, *plus, *out, *dout, *din, *dplus;
    float *weights, *biases, *dweights, *dbiases, *running; /* [channels] */
    float *state, *partial, *few;
};

/* Return the first channels of each row. */
static float *first_channels(const float *from, size_t rows, size_t channels)
{
    float *to = kernel_zeros(rows * channels);

    for (size_t row = 0; row < rows; row++)
        memcpy(to + row * channels, from + row * WHOLE,
               channels * sizeof(float));
    return to;
}

static struct norm norm_new(struct bench *b, size_t channels,
                            enum kernel_type type)
{
    size_t n = ROWS * channels;

    return (struct norm){
        .b = b,
        .type = type,
        .channels = channels,
        .n = n,
        .rows = (size_t)(b->pass.n ? b->pass.n : CHUNK) * PIXELS,
        .is_training = b->pass.is_training,
        .has_relu = b->layer.spec.relu,
        .has_plus = b->layer.spec.plus,
        .in = first_channels(b->in, ROWS, channels),
        .plus = first_channels(b->plus, ROWS, channels),
        .out = kernel_values(n, 7, type),
        .dout = first_channels(b->dout, ROWS, channels),
        .din = kernel_values(n, 8, type),
        .dplus = kernel_values(n, 9, type),
        .weights = first_channels(b->layer.weights, 1, channels),
        .biases = first_channels(b->layer.biases, 1, channels),
        .dweights = kernel_zeros(channels),
        .dbiases = kernel_zeros(channels),
        .running = first_channels(b->layer.running, 2, channels),
        .state = kernel_zeros(TRAIN_CUDA_NORM_ARRAYS * channels),
        .partial = kernel_values(2 * SLICES * channels, 10, F32),
        .few = kernel_values(4 * channels, 11, F32),
    };
}

static void norm_free(struct norm *m)
{
    float *all[] = {m->in,      m->plus,    m->out,     m->dout,     m->din,
                    m->dplus,   m->weights, m->biases,  m->dweights, m->dbiases,
                    m->running, m->state,   m->partial, m->few};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

#define STATE(m) ARRAY((m)->state, TRAIN_CUDA_NORM_ARRAYS *(m)->channels)
#define CHANNELS(m, p) ARRAY((m)->p, (m)->channels)
/* The sums of `width` numbers a slice, in all slices and in two. */
#define PARTIAL(m, width) ARRAY((m)->partial, SLICES *(width))
#define FEW(m, width) ARRAY((m)->few, 2 * (width))

static void norm_statistics(struct norm *m)
{
    size_t n = m->channels, counted = m->rows * n;

    KERNEL("fold", m->type, VALUES(m->in, counted), PARTIAL(m, n), WORD(0));
    KERNEL("fold", F32, PARTIAL(m, n), FEW(m, n), WORD(0));
    KERNEL("norm_mean", F32, FEW(m, n), STATE(m), WIDE(m->rows));
    KERNEL("norm_squares", m->type, VALUES(m->in, counted), PARTIAL(m, n),
           STATE(m));
    KERNEL("fold", F32, PARTIAL(m, n), FEW(m, n), WORD(0));
    KERNEL("norm_finish", F32, FEW(m, n), STATE(m), ARRAY(m->running, 2 * n),
           CHANNELS(m, weights), CHANNELS(m, biases), WIDE(m->rows));
}

static void norm_forward(struct norm *m)
{
    if (m->is_training)
        norm_statistics(m);
    else
        KERNEL("norm_finish", F32, ABSENT, STATE(m),
               ARRAY(m->running, 2 * m->channels), CHANNELS(m, weights),
               CHANNELS(m, biases), WIDE(0));
    KERNEL("norm_apply", m->type, VALUES(m->in, m->n),
           VALUES(m->plus, m->has_plus ? m->n : 0), VALUES(m->out, m->n),
           STATE(m), WORD(m->has_relu));
}

/* din is written over in. */
static void norm_backward(struct norm *m)
{
    size_t n = 2 * m->channels;

    KERNEL("norm_products", m->type, VALUES(m->in, m->n),
           VALUES(m->out, m->has_relu ? m->n : 0), VALUES(m->dout, m->n),
           VALUES(m->dplus, m->has_plus ? m->n : 0), PARTIAL(m, n), STATE(m),
           WIDE(m->rows));
    KERNEL("fold", F32, PARTIAL(m, n), FEW(m, n), WORD(0));
    KERNEL("norm_factors", F32, FEW(m, n), STATE(m), CHANNELS(m, weights),
           CHANNELS(m, dweights), CHANNELS(m, dbiases), WIDE(m->rows),
           WORD(m->is_training));
    KERNEL("norm_back", m->type, VALUES(m->in, m->n), VALUES(m->dout, m->n),
           VALUES(m->in, m->n), STATE(m), WIDE(m->rows));
}

static void norm_compare(struct norm *m, const float *is, const float *whole,
                         const char *what)
{
    float *want = first_channels(whole, ROWS, m->channels);

    kernel_near(is, want, m->n, m->type, what);
    free(want);
}

static void check_norm(struct bench *b, size_t channels, enum kernel_type type)
{
    struct layer *l = &b->layer;
    struct norm m = norm_new(b, channels, type);
    float *running;

    memset(l->dweights, 0, (l->n_weights + l->n_biases) * sizeof(float));
    bench_value(b);
    running = first_channels(l->running, 2, channels);
    norm_forward(&m);
    norm_compare(&m, m.out, b->out, "out");
    kernel_near(m.running, running, 2 * channels, F32, "running");
    bench_backward(b, 1);
    norm_backward(&m);
    norm_compare(&m, m.in, b->din, "din");
    if (m.has_plus)
        norm_compare(&m, m.dplus, b->dplus, "dplus");
    kernel_near(m.dweights, l->dweights, channels, F32, "dweights");
    kernel_near(m.dbiases, l->dbiases, channels, F32, "dbiases");
    free(running);
    norm_free(&m);
}

/* _i: training, relu, plus, and whether not all images count. */
START_TEST(batches_are_normalized_as_by_the_processors)
{
    struct layer_spec spec = {
        .kind = LAYER_NORM, .relu = _i >> 1 & 1, .plus = _i >> 2 & 1};
    struct shape in = {WHOLE, 3, 5, WHOLE};

    for (size_t channels = 1; channels <= MOST_CHANNELS; channels++)
        for (int type = F32; type <= BF16; type++) {
            struct bench b;

            bench_make(&b, &spec, in, (enum kernel_type)type);
            b.pass.is_training = _i & 1;
            b.pass.n = _i >> 3 & 1 ? CHUNK - 1 : 0;
            check_norm(&b, channels, (enum kernel_type)type);
            bench_fini(&b);
        }
}
END_TEST

START_TEST(a_channel_with_nan_is_nan)
{
    struct layer_spec spec = {.kind = LAYER_NORM, .relu = 1};
    struct shape in = {WHOLE, 3, 5, WHOLE};
    struct bench b;

    bench_make(&b, &spec, in, F32);
    b.in[WHOLE + 2] = NAN;
    check_norm(&b, 5, F32);
    bench_fini(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer_cuda_layers");
    TCase *tc = suite_case(suite, "layers", 60);

    tcase_add_loop_test(tc, max_pools_choose_and_give_back_as_the_processors, 0,
                        sizeof(pools) / sizeof(pools[0]));
    tcase_add_test(tc, mean_pools_have_the_processors_bits);
    tcase_add_test(tc, dropout_has_the_processors_masks);
    tcase_add_test(tc, masks_are_right_up_to_the_last_bit);
    tcase_add_loop_test(tc, batches_are_normalized_as_by_the_processors, 0, 16);
    tcase_add_test(tc, a_channel_with_nan_is_nan);
    return suite_run(suite);
}
