/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_cuda_kernels.c - the trainer's kernels for CUDA that are no layer's alone,
 * compiled for the host, against what the processors do. */
#include "tests/support/suite.h"
#include "tests/trainer/trainer_kernel.h"
#include "trainer/cuda/kernels.h"
#include "trainer/data.h"
#include "trainer/device.h"
#include "trainer/layers.h"
#include "trainer/optim.h"
#include "trainer/synthetic.h"
#include "trainer/wire.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CHANNELS 17
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- biases and relu ------------------------------------------------------------- */

static void check_biases(size_t channels, int has_biases, int has_relu,
                         enum kernel_type type)
{
    size_t n = 7 * channels;
    float *out = kernel_values(n, 1, type), *want = kernel_values(n, 1, type);
    float *biases = kernel_values(channels, 2, F32);

    out[n / 2] = want[n / 2] = NAN;
    for (size_t i = 0; has_biases && i < n; i++)
        want[i] += biases[i % channels];
    if (has_relu)
        layer__relu(want, n);
    kernel_round(want, n, type);
    KERNEL("bias_relu", type, VALUES(out, n),
           ARRAY(biases, has_biases ? channels : 0), WORD(has_relu));
    kernel_same(out, want, n, "out");
    free(out);
    free(want);
    free(biases);
}

START_TEST(biases_are_added_and_negative_values_cleared)
{
    for (size_t channels = 1; channels <= MOST_CHANNELS; channels++)
        for (int what = 0; what < 8; what++)
            check_biases(channels, what & 1, what >> 1 & 1,
                         what >> 2 ? BF16 : F32);
}
END_TEST

START_TEST(gradients_stop_where_relu_has_cleared)
{
    for (size_t n = 1; n < 40; n++)
        for (int type = F32; type <= BF16; type++) {
            float *out = kernel_values(n, 1, (enum kernel_type)type);
            float *dout = kernel_values(n, 2, (enum kernel_type)type);
            float *want = kernel_values(n, 2, (enum kernel_type)type);

            out[n / 2] = NAN;
            out[n / 3] = 0;
            layer__relu_back(out, want, n);
            KERNEL("relu_back", (enum kernel_type)type, VALUES(out, n),
                   VALUES(dout, n));
            kernel_same(dout, want, n, "dout");
            free(out);
            free(dout);
            free(want);
        }
}
END_TEST

START_TEST(values_are_added)
{
    for (size_t n = 1; n < 40; n++)
        for (int type = F32; type <= BF16; type++) {
            float *to = kernel_values(n, 1, (enum kernel_type)type);
            float *from = kernel_values(n, 2, (enum kernel_type)type);
            float *want = kernel_values(n, 1, (enum kernel_type)type);

            for (size_t i = 0; i < n; i++)
                want[i] += from[i];
            kernel_round(want, n, (enum kernel_type)type);
            KERNEL("add", (enum kernel_type)type, VALUES(to, n),
                   VALUES(from, n));
            kernel_same(to, want, n, "sums");
            free(to);
            free(from);
            free(want);
        }
}
END_TEST

/* ---- sums ------------------------------------------------------------------------ */

static void check_fold(size_t from_n, size_t n, int add, enum kernel_type type)
{
    float *from = kernel_values(from_n, 1, type);
    float *to = kernel_values(n, 2, F32), *want = kernel_values(n, 2, F32);

    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (size_t at = i; at < from_n; at += n)
            sum += from[at];
        want[i] = add ? want[i] + sum : sum;
    }
    KERNEL("fold", type, VALUES(from, from_n), ARRAY(to, n), WORD(add));
    kernel_same(to, want, n, "sums");
    free(from);
    free(to);
    free(want);
}

START_TEST(rows_fold_in_their_order)
{
    static const size_t lens[] = {1, 3, 16, 40, 100, 256, 333};

    for (size_t k = 0; k < N_OF(lens); k++)
        for (size_t n = 1; n <= 2 * MOST_CHANNELS; n++)
            for (int add = 0; add < 2; add++) {
                check_fold(lens[k], n, add, F32);
                check_fold(lens[k], n, add, BF16);
            }
}
END_TEST

START_TEST(squares_are_summed_in_double)
{
    for (size_t n = 1; n < 300; n += 7) {
        float *values = kernel_values(n, 1, F32);
        double sums[24], few[4] = {0}, sum = 5, want = 5;

        for (size_t i = 0; i < n; i++)
            want += (double)values[i] * (double)values[i];
        KERNEL("squares", F32, ARRAY(values, n), ARRAY(sums, 24));
        KERNEL("fold", F64, ARRAY(sums, 24), ARRAY(few, 4), WORD(0));
        KERNEL("fold", F64, ARRAY(few, 4), ARRAY(&sum, 1), WORD(1));
        ck_assert_double_eq_tol(sum, want, 1e-13 * want);
        free(values);
    }
}
END_TEST

/* ---- weights ----------------------------------------------------------------------- */

static void check_weights(size_t ins, size_t padded, enum kernel_type type)
{
    enum { OUTS = 3, AREA = 9 };
    size_t n = OUTS * ins * AREA, n_packed = OUTS * AREA * padded;
    float *weights = kernel_values(n, 1, type);
    float *packed = kernel_values(n_packed, 2, type);
    float *sums = kernel_values(n, 3, F32), *want = kernel_values(n, 3, F32);

    KERNEL("pack_weights", type, ARRAY(weights, n), VALUES(packed, n_packed),
           WORD(ins), WORD(padded), WORD(AREA));
    for (size_t i = 0; i < n_packed; i++) {
        size_t in = i % padded, k = i / padded % AREA, out = i / padded / AREA;

        ck_assert(packed[i] ==
                  (in < ins ? weights[(out * ins + in) * AREA + k] : 0));
        if (in >= ins)
            packed[i] = NAN; /* nobody looks there */
    }
    KERNEL("unpack_weights", type, VALUES(packed, n_packed), ARRAY(sums, n),
           WORD(ins), WORD(padded), WORD(AREA));
    for (size_t i = 0; i < n; i++)
        want[i] += weights[i];
    kernel_same(sums, want, n, "sums");
    free(weights);
    free(packed);
    free(sums);
    free(want);
}

START_TEST(weights_are_turned_and_turned_back)
{
    for (size_t ins = 1; ins <= MOST_CHANNELS; ins++)
        for (size_t padded = ins; padded < ins + 9; padded += 4) {
            check_weights(ins, padded, F32);
            check_weights(ins, padded, BF16);
        }
}
END_TEST

static void check_padding(size_t channels, size_t padded, enum kernel_type type)
{
    enum { PIXELS = 11 };
    float *from = kernel_values(PIXELS * channels, 1, type);
    float *to = kernel_values(PIXELS * padded, 2, type);

    KERNEL("pad_channels", type, VALUES(from, PIXELS * channels),
           VALUES(to, PIXELS * padded), WORD(channels), WORD(padded));
    for (size_t i = 0; i < PIXELS * padded; i++) {
        size_t c = i % padded;

        ck_assert(to[i] ==
                  (c < channels ? from[i / padded * channels + c] : 0));
    }
    free(from);
    free(to);
}

START_TEST(rows_get_more_channels_or_fewer)
{
    for (size_t channels = 1; channels <= MOST_CHANNELS; channels++)
        for (size_t padded = 1; padded <= MOST_CHANNELS; padded++) {
            check_padding(channels, padded, F32);
            check_padding(channels, padded, BF16);
        }
}
END_TEST

/* ---- the loss ---------------------------------------------------------------------- */

enum { IMAGES = 5 };

static void check_loss(int classes, double smoothing, int wants_gradient,
                       enum kernel_type type)
{
    size_t n = (size_t)(IMAGES * classes);
    float *scores = kernel_values(n, 1, type), *got = kernel_zeros(n);
    float *want = kernel_zeros(n);
    unsigned char labels[IMAGES];
    double sums[2 * IMAGES], total[2];
    struct loss_job job = {.scores = scores,
                           .labels = labels,
                           .n = IMAGES,
                           .classes = classes,
                           .scale = 0.25f,
                           .smoothing = smoothing,
                           .dscores = wants_gradient ? want : NULL};
    struct model_score score = {0};

    for (int i = 0; i < IMAGES; i++)
        labels[i] = (unsigned char)((3 * i + 1) % classes);
    for (int c = 0; c < classes; c++)
        scores[c] = 0.5f; /* the first one is the largest */
    scores[n - 1] = smoothing > 0.15 ? NAN : 3;
    softmax_loss(&job, &score);
    KERNEL("softmax", type, VALUES(scores, n), ARRAY(labels, IMAGES),
           VALUES(got, wants_gradient ? n : 0), ARRAY(sums, 2 * IMAGES),
           WORD(classes), REAL(job.scale), DOUBLE(smoothing));
    KERNEL("fold", F64, ARRAY(sums, 2 * IMAGES), ARRAY(total, 2), WORD(0));
    ck_assert_double_eq(total[1], score.n_right);
    ck_assert(fabs(total[0] - score.loss) < 1e-12 ||
              (isnan(total[0]) && isnan(score.loss)));
    kernel_near(got, want, n, type, "dscores");
    free(scores);
    free(got);
    free(want);
}

/* Without smoothing, with it, and with a row that has NaN; a row's scores are equal. */
START_TEST(losses_and_their_gradients_are_the_processors)
{
    static const double smoothings[] = {0, 0.1, 0.2};

    for (int classes = 2; classes <= MOST_CHANNELS; classes++)
        for (size_t k = 0; k < N_OF(smoothings); k++)
            for (int what = 0; what < 4; what++)
                check_loss(classes, smoothings[k], what & 1,
                           what >> 1 ? BF16 : F32);
}
END_TEST

/* ---- batches ------------------------------------------------------------------------ */

static void check_gather(int channels, enum augment augment,
                         enum kernel_type type)
{
    enum { SET = 6, HEIGHT = 7, WIDTH = 5, PICKED = 9 };
    uint32_t index[PICKED] = {5, 0, 3, 3, 1, 2, 4, 5, 0};
    struct images set = {
        .n = SET, .channels = channels, .height = HEIGHT, .width = WIDTH};
    size_t len = images_len(&set), n = PICKED * len;
    unsigned char *pixels = malloc(SET * len), of_set[SET], want_labels[PICKED];
    unsigned char labels[PICKED] = {0};
    float *out = kernel_values(n, 1, type), *want = kernel_zeros(n);
    struct pixel_scale scale;
    struct images_pick pick = {&set, index, PICKED, &scale, augment, 77, 1000};
    struct train_step step = {.augment = 77, .first = 993};

    set.pixels = pixels;
    set.labels = of_set;
    for (size_t i = 0; i < SET * len; i++)
        pixels[i] = (unsigned char)(i * 37 + i / 256);
    for (int i = 0; i < SET; i++)
        of_set[i] = (unsigned char)(9 - i);
    for (int v = 0; v < 256; v++)
        scale.value[v] = (float)(v - 99) / 77;
    images_gather(&pick, want, want_labels);
    kernel_round(want, n, type);
    KERNEL("gather", type, ARRAY(pixels, SET * len), ARRAY(of_set, SET),
           ARRAY(index, PICKED), ARRAY(scale.value, 256), VALUES(out, n),
           ARRAY(labels, PICKED), ARRAY(&step, augment == AUGMENT_NONE ? 0 : 1),
           WORD(channels), WORD(HEIGHT), WORD(WIDTH), WORD(augment), WIDE(7));
    kernel_same(out, want, n, "pixels");
    ck_assert_mem_eq(labels, want_labels, PICKED);
    free(pixels);
    free(out);
    free(want);
}

START_TEST(images_are_gathered_cut_and_mirrored_as_by_the_processors)
{
    for (int channels = 1; channels <= 4; channels++)
        for (int type = F32; type <= BF16; type++) {
            check_gather(channels, AUGMENT_NONE, (enum kernel_type)type);
            check_gather(channels, AUGMENT_FLIP_CROP, (enum kernel_type)type);
        }
}
END_TEST

START_TEST(images_are_drawn_as_by_the_processors)
{
    enum { PICKED = 4, FIRST = 40, HEIGHT = 9, WIDTH = 7 };
    uint32_t index[PICKED] = {5, 0, 1999999999, 12}, order[PICKED] = {0};
    struct images set = {.channels = 3, .height = HEIGHT, .width = WIDTH};
    size_t len = images_len(&set);
    unsigned char *pixels = calloc(PICKED, len), labels[PICKED] = {0};
    const struct synthetic *s;

    ck_assert_int_eq(synthetic_promise(&set, 2000000000, 7, FIRST), 0);
    s = set.drawn;
    KERNEL("paint", F32, ARRAY(s->patterns, DATA_CLASSES * s->len),
           ARRAY(index, PICKED), ARRAY(pixels, PICKED * len),
           ARRAY(labels, PICKED), ARRAY(order, PICKED), WORD(3), WORD(HEIGHT),
           WORD(WIDTH), WIDE(s->key), WIDE(s->first));
    for (size_t i = 0; i < PICKED; i++) {
        struct synthetic_image want = synthetic_image(&set, index[i]);

        ck_assert_uint_eq(order[i], i);
        ck_assert_uint_eq(labels[i], want.look.label);
        for (size_t p = 0; p < len; p++)
            ck_assert_uint_eq(
                pixels[i * len + p],
                synthetic_pixel(&want, (int)(p / (HEIGHT * WIDTH)),
                                (int)(p / WIDTH % HEIGHT), (int)(p % WIDTH)));
    }
    free(pixels);
    images_fini(&set);
}
END_TEST

/* ---- optimizers ----------------------------------------------------------------------- */

/* Make o's step by a kernel, as optim.c computes its factors; canary: NULL: absent. */
static void kernel_step(const struct optim *o, float *params,
                        const float *gradients, float *state,
                        const float *canary)
{
    size_t n = o->n, n_canary = canary ? 1 : 0;
    double t = (double)o->step, root = sqrt(1 - pow((double)o->beta2, t));
    double rate = o->lr * root / (1 - pow((double)o->beta1, t));
    struct train_step step = {.rate = (float)o->lr};

    if (o->kind == OPTIM_ADAM) {
        step.rate = (float)rate;
        step.epsilon = (float)((double)o->epsilon * root);
    }

    if (o->kind == OPTIM_SGD)
        KERNEL("sgd", F32, ARRAY(params, n), ARRAY(gradients, n),
               ARRAY(state, n), ARRAY(canary, n_canary), ARRAY(&step, 1),
               REAL(o->momentum), REAL(o->weight_decay), WORD(o->nesterov));
    else if (o->kind == OPTIM_ADAM)
        KERNEL("adam", F32, ARRAY(params, n), ARRAY(gradients, n),
               ARRAY(state, n), ARRAY(state + n, n), ARRAY(canary, n_canary),
               ARRAY(&step, 1), REAL(o->beta1), REAL(o->beta2),
               REAL(o->weight_decay));
    else
        KERNEL("adagrad", F32, ARRAY(params, n), ARRAY(gradients, n),
               ARRAY(state, n), ARRAY(canary, n_canary), ARRAY(&step, 1),
               REAL(o->epsilon), REAL(o->weight_decay));
}

static void check_values(enum optim_kind kind, const float *is,
                         const float *want, size_t n)
{
    for (size_t i = 0; kind == OPTIM_ADAM && i < n; i++)
        /* processors with FMA fuse its operations */
        ck_assert_double_eq_tol(is[i], want[i],
                                2e-8 + 1e-6 * fabs((double)want[i]));
    if (kind != OPTIM_ADAM)
        kernel_same(is, want, n, optim_name(kind));
}

static void check_steps(struct optim *o, size_t n)
{
    float good = -3, bad[] = {NAN, INFINITY};
    const float *const canaries[] = {NULL, &good, &bad[0], &bad[1], NULL};
    float *params = kernel_values(n, 1, F32), *want = kernel_values(n, 1, F32);
    float *state = kernel_zeros(2 * n);

    ck_assert_int_eq(optim_init(o, &device_cpu, n), 0);
    for (size_t i = 0; i < N_OF(canaries); i++) {
        float *gradients = kernel_values(n, i + 5, F32);

        o->step++;
        optim_move(o, &(struct optim_part){.n = n,
                                           .params = want,
                                           .gradients = gradients,
                                           .canary = canaries[i]});
        kernel_step(o, params, gradients, state, canaries[i]);
        free(gradients);
    }
    check_values(o->kind, params, want, n);
    check_values(o->kind, state, o->state, o->n_state);
    optim_fini(o);
    free(params);
    free(want);
    free(state);
}

/* _i: the kind, Nesterov's momentum, and decay. */
START_TEST(optimizers_step_as_on_the_processors)
{
    for (size_t n = 1; n < 60; n++) {
        struct optim o = {.kind = (enum optim_kind)(_i % 3),
                          .lr = 0.1,
                          .momentum = 0.9f,
                          .nesterov = _i / 3 & 1,
                          .beta1 = 0.9f,
                          .beta2 = 0.999f,
                          .epsilon = 1e-7f,
                          .weight_decay = _i / 6 ? 0.01f : 0};

        check_steps(&o, n);
    }
}
END_TEST

/* ---- whole arrays ------------------------------------------------------------------------ */

START_TEST(arrays_are_added_and_clipped)
{
    for (size_t n = 1; n < 60; n++) {
        float *a = kernel_values(n, 1, F32), *b = kernel_values(n, 2, F32);
        float *want = kernel_values(n, 1, F32);
        double squares = 0;

        for (size_t i = 0; i < n; i++)
            want[i] += b[i];
        KERNEL("add", F32, ARRAY(a, n), ARRAY(b, n));
        kernel_same(a, want, n, "values");
        device_cpu.squares(a, n, &squares);
        for (double most = sqrt(squares) / 2; most < 3; most += 2) {
            device_cpu.clip(want, n, &squares, most);
            KERNEL("clip", F32, ARRAY(a, n), ARRAY(&squares, 1), DOUBLE(most));
            kernel_same(a, want, n, "clipped values");
        }
        free(a);
        free(b);
        free(want);
    }
}
END_TEST

static void check_spoilt(double loss, size_t n, size_t parts)
{
    struct model_score score = {loss, 1};
    float *is = kernel_values(n, 1, F32), *want = kernel_values(n, 1, F32);

    device_cpu.spoil(&score, want, n, parts);
    KERNEL("spoil", F32, ARRAY(&score.loss, 2), ARRAY(is, n), WORD(parts));
    kernel_same(is, want, n, "values");
    ck_assert(isfinite(want[n - 1]) == isfinite(loss));
    ck_assert(n < 2 * parts || isfinite(want[0]));
    free(is);
    free(want);
}

START_TEST(a_loss_that_is_not_finite_spoils_the_end_of_each_part)
{
    for (size_t n = 1; n < 60; n++)
        for (size_t parts = 1; parts <= n; parts++) {
            check_spoilt(3, n, parts);
            check_spoilt(NAN, n, parts);
            check_spoilt(INFINITY, n, parts);
        }
}
END_TEST

static void check_wire(enum wire wire, size_t n)
{
    static const float special[] = {0,     -0.0f,    INFINITY, -INFINITY, NAN,
                                    1e-8f, 65520.0f, 1e38f,    -1e-40f};
    enum kernel_type type = wire == WIRE_F16 ? F16 : BF16;
    float *from = kernel_values(n, n, F32), *back = kernel_zeros(n);
    float *want_back = kernel_zeros(n);
    uint16_t *packed = calloc(n, 2), *want = calloc(n, 2);

    for (size_t i = 0; i < n; i += 3)
        from[i] = special[i % N_OF(special)];
    wire_pack(wire, from, want, n);
    wire_unpack(wire, want, want_back, n);
    KERNEL("pack", type, ARRAY(from, n), ARRAY(packed, n));
    ck_assert_mem_eq(packed, want, 2 * n);
    KERNEL("unpack", type, ARRAY(packed, n), ARRAY(back, n));
    kernel_same(back, want_back, n, "values");
    free(from);
    free(back);
    free(want_back);
    free(packed);
    free(want);
}

START_TEST(wires_have_the_processors_bits)
{
    for (size_t n = 1; n < 60; n++) {
        check_wire(WIRE_F16, n);
        check_wire(WIRE_BF16, n);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer_cuda_kernels");
    TCase *tc = suite_case(suite, "kernels", 60);

    tcase_add_test(tc, biases_are_added_and_negative_values_cleared);
    tcase_add_test(tc, gradients_stop_where_relu_has_cleared);
    tcase_add_test(tc, values_are_added);
    tcase_add_test(tc, rows_fold_in_their_order);
    tcase_add_test(tc, squares_are_summed_in_double);
    tcase_add_test(tc, weights_are_turned_and_turned_back);
    tcase_add_test(tc, rows_get_more_channels_or_fewer);
    tcase_add_test(tc, losses_and_their_gradients_are_the_processors);
    tcase_add_test(tc,
                   images_are_gathered_cut_and_mirrored_as_by_the_processors);
    tcase_add_test(tc, images_are_drawn_as_by_the_processors);
    tcase_add_loop_test(tc, optimizers_step_as_on_the_processors, 0, 12);
    tcase_add_test(tc, arrays_are_added_and_clipped);
    tcase_add_test(tc, a_loss_that_is_not_finite_spoils_the_end_of_each_part);
    tcase_add_test(tc, wires_have_the_processors_bits);
    return suite_run(suite);
}
