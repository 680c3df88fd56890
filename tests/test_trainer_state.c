/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_state.c - the command line, the optimizers, checkpoints. */
#include "trainer/args.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/folder.h"
#include "trainer/optim.h"
#include "trainer/wire.h"

#include <zlib.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the command line ---- */

/* Parse words, which end with NULL. */
static int parse(struct args *args, const char *const *words)
{
    static char text[16][64];
    char *argv[16] = {text[0]};
    int argc = 1;

    for (; words[argc - 1]; argc++) {
        snprintf(text[argc], sizeof(text[0]), "%s", words[argc - 1]);
        argv[argc] = text[argc];
    }
    return args_parse(args, argc, argv);
}

#define PARSE(args, ...) parse(args, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(flags_come_with_a_space_or_an_equals_sign_or_an_underscore)
{
    struct args a;

    ck_assert_int_eq(PARSE(&a, "--batch_size=256", "--epochs", "7", "--opt=sgd",
                           "--lr", "1e-2", "--dry_run", "--dataset",
                           "synthetic", "--lr-scale", "none", "--seed", "0"),
                     0);
    ck_assert_uint_eq(a.batch_size, 256);
    ck_assert_uint_eq(a.epochs, 7);
    ck_assert_int_eq(a.opt, OPTIM_SGD);
    ck_assert_double_eq(a.lr, 0.01);
    ck_assert_int_eq(a.dry_run, 1);
    ck_assert_str_eq(a.dataset, "synthetic");
    ck_assert_int_eq(a.lr_scale, LR_NONE);
    ck_assert_uint_eq(a.seed, 0);
}
END_TEST

START_TEST(row17_a_profile_has_a_prefix_or_none)
{
    struct args a;

    ck_assert_int_eq(PARSE(&a, "--epochs=2"), 0);
    ck_assert_str_eq(a.profile, "");
    ck_assert_int_eq(PARSE(&a, "--profile", "--epochs=2"), 0);
    ck_assert_str_eq(a.profile, "1");
    ck_assert_uint_eq(a.epochs, 2);
    ck_assert_int_eq(PARSE(&a, "--profile=dir/mine"), 0);
    ck_assert_str_eq(strrchr(a.profile, '/'), "/mine");
    ck_assert_int_eq(PARSE(&a, "--profile", "mine"), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "'mine' is not understood"));
}
END_TEST

START_TEST(without_flags_the_defaults_hold)
{
    struct args a;

    ck_assert_int_eq(parse(&a, (const char *const[]){NULL}), 0);
    ck_assert_str_eq(a.dataset, "fashion-mnist");
    ck_assert_str_eq(a.data_dir, "");
    ck_assert_uint_eq(a.epochs, 3);
    ck_assert_uint_eq(a.batch_size, 64);
    ck_assert_uint_eq(a.seed, 42);
    ck_assert_double_eq(a.momentum, 0.9);
    ck_assert_int_eq(a.opt, OPTIM_ADAM);
    ck_assert_int_eq(a.dropout_off, 0);
    ck_assert_int_eq(a.dry_run, 0);
}
END_TEST

START_TEST(a_bad_command_line_is_refused_in_one_sentence)
{
    static const struct {
        const char *words[4], *says;
    } cases[] = {
        {{"--epoch", "3"}, "--epoch is no option; did you mean --epochs?"},
        {{"--bach-size", "3"}, "did you mean --batch-size?"},
        {{"--epochs"}, "--epochs needs a value"},
        {{"--epochs", "0"}, "1 or more"},
        {{"--epochs", "-3"}, "1 or more"},
        {{"--epochs", "3x"}, "1 or more"},
        {{"--epochs", ""}, "1 or more"},
        {{"--epochs", "99999999999999999999"}, "1 or more"},
        {{"--batch-size=3000000000"}, "1 or more"},
        {{"--limit-train", "x"}, "0 or more"},
        {{"--seed", "-1"}, "0 or more"},
        {{"--lr", "0"}, "above 0"},
        {{"--lr", "-0.1"}, "above 0"},
        {{"--lr", "nan"}, "a number"},
        {{"--lr", "inf"}, "a number"},
        {{"--lr", "1e400"}, "below 3.4e38"},
        {{"--lr", "1e39"}, "below 3.4e38"},
        {{"--lr", "1e-50"}, "above 0"},
        {{"--lr", "1e"}, "a number"},
        {{"--bucket-mb", "nan"}, "a number"},
        {{"--momentum", "nan"}, "below 1"},
        {{"--momentum", "-0.1"}, "below 1"},
        {{"--momentum", "1"}, "below 1"},
        {{"--opt", "lion"}, "sgd|adam|adagrad"},
        {{"--lr-schedule", "linear"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:0,0.1"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:-1,0.1"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:3,0"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:3,nan"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:3,inf"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:3,0.1x"}, "const, cosine, or step:E,F"},
        {{"--lr-schedule", "step:9999999999,1"}, "const, cosine, or step:E,F"},
        {{"--synthetic", "--lr-schedule=cosine"}, "has no epochs for a rate"},
        {{"--batch-size", "64", "--global-batch-size=64"}, "give one of them"},
        {{"--global-batch-size", "0"}, "1 or more"},
        {{"--target-acc", "99"}, "a part of 1, as 0.99"},
        {{"--target-acc", "0"}, "above 0"},
        {{"--synthetic", "--target-acc", "0.9"}, "tests nothing"},
        {{"--eval-only"}, "name it with --resume PATH"},
        {{"--eval-only", "--resume=x", "--synthetic"}, "keeps nothing"},
        {{"--nesterov"}, "give --opt sgd"},
        {{"--nesterov", "--opt=sgd", "--momentum=0"}, "--momentum above 0"},
        {{"--label-smoothing", "1"}, "below 1"},
        {{"--profile="}, "PREFIX"},
        {{"--timeline"}, "--timeline needs a value: FILE"},
        {{"--warmup-steps", "3", "--warmup-epochs=1"}, "give one of them"},
        {{"--dataset", "cifar"}, "fashion-mnist|mnist|cifar10|synthetic"},
        {{"--data-dir="}, "DIR"},
        {{"--dry-run=yes"}, "takes no value"},
        {{"train"}, "'train' is not understood"},
        {{"--"}, "'--' is not understood"},
        {{"-q", "2"}, "'-q' is not understood"},
        {{"-n", "2"}, "the launcher says how many ranks"},
        {{"--resume", "auto"}, "--checkpoint DIR"},
        {{"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
         "is no option"},
    };
    struct args a;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(parse(&a, cases[i].words), -1);
        ck_assert_msg(strstr(train_error(), cases[i].says), "'%s' has no '%s'",
                      train_error(), cases[i].says);
        ck_assert_ptr_null(strchr(train_error(), '\n'));
    }
}
END_TEST

START_TEST(row21_a_global_batch_is_that_of_all_ranks_and_parts)
{
    struct args a;

    ck_assert_int_eq(PARSE(&a, "--global-batch-size=96", "--accum=4"), 0);
    ck_assert_int_eq(args_share_batch(&a, 3), 0);
    ck_assert_uint_eq(a.batch_size, 8);
    ck_assert_int_eq(args_share_batch(&a, 5), -1);
    ck_assert_str_eq(train_error(),
                     "--global-batch-size 96 does not divide by 5 ranks x "
                     "--accum 4; give a multiple of 20");
    ck_assert_int_eq(PARSE(&a, "--batch-size=5"), 0);
    ck_assert_int_eq(args_share_batch(&a, 3), 0);
    ck_assert_uint_eq(a.batch_size, 5);
}
END_TEST

/* A name as long as a flag may be, and one that is longer. */
START_TEST(a_flag_of_any_length_is_survived)
{
    char text[300], *argv[] = {text, text, NULL};
    struct args a;

    memset(text, 'a', sizeof(text));
    memcpy(text, "--", 2);
    for (size_t len = 60; len < sizeof(text); len++) {
        text[len] = '\0';
        ck_assert_int_eq(args_parse(&a, 2, argv), -1);
        text[len] = 'a';
    }
}
END_TEST

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

    ck_assert_int_eq(optim_init(&o, 2), 0);
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

    ck_assert_int_eq(optim_init(&o, 2), 0);
    for (int i = 0; i < 10; i++) {
        double ahead = place + 0.9 * speed;
        double slope = 0.5 + 0.5 * want;

        buffer = 0.9 * buffer + slope;
        want -= 0.1 * (slope + 0.9 * buffer);
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
    struct optim o = {.kind = OPTIM_ADAM, .lr = 0.01, .beta1 = 0.9f,
                      .beta2 = 0.999f, .epsilon = 1e-7f};
    double want[19], mean[19] = {0}, square[19] = {0};
    float p[19], g[19];

    ck_assert_int_eq(optim_init(&o, 19), 0);
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
            ck_assert_int_eq(optim_init(&o[k], 21), 0);
            for (int i = 0; i < 21; i++)
                p[k][i] = (float)i / 7;
        }
        for (int t = 0; t < 3; t++) {
            struct optim_part a = {0, cut, p[1], g};
            struct optim_part b = {cut, 21 - cut, p[1] + cut, g + cut};

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

    ck_assert_int_eq(optim_init(&o, 2), 0);
    for (int i = 0; i < 3; i++)
        optim_step(&o, p, g);
    ck_assert_double_eq_tol((double)p[0], 0.775821515, 1e-6);
    ck_assert_double_eq_tol((double)p[1], 2.226356670, 1e-6);
    optim_fini(&o);
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

/* ---- checkpoints ---- */

#define N_PARAMS 100
#define N_STATE 200
#define N_RUNNING 30

static char dir[64];
#define HEADER 96 /* bytes before the parameters */

static float params[N_PARAMS], state[N_STATE], running[N_RUNNING];

static struct checkpoint sample(uint64_t epoch)
{
    for (int i = 0; i < N_PARAMS; i++)
        params[i] = (float)(i * 3) + (float)epoch;
    for (int i = 0; i < N_STATE; i++)
        state[i] = -(float)i;
    for (int i = 0; i < N_RUNNING; i++)
        running[i] = 0.5f + (float)i;
    return (struct checkpoint){.epoch = epoch,
                               .step = 70,
                               .seed = 9,
                               .steps = {2, 64, 1, 1},
                               .optim = OPTIM_ADAM,
                               .params = params,
                               .state = state,
                               .n_params = N_PARAMS,
                               .n_state = N_STATE,
                               .running = running,
                               .n_running = N_RUNNING};
}

static void set_up(void)
{
    snprintf(dir, sizeof(dir), "/tmp/coll-ckpt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void tear_down(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void path_of(char path[CHECKPOINT_PATH], const char *name)
{
    snprintf(path, CHECKPOINT_PATH, "%s/%s", dir, name);
}

/* A folder has one writer; what an earlier run left goes out of a new one's way. */
START_TEST(two_runs_do_not_share_a_folder)
{
    struct checkpoint c = sample(3);
    struct folder mine = {0}, other = {0};
    char path[CHECKPOINT_PATH];

    ck_assert_int_eq(folder_init(&mine, dir), 0);
    ck_assert_int_eq(folder_init(&other, dir), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "a running job"));
    ck_assert_int_eq(folder_begin(&mine, 0), 0);
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    folder_fini(&mine);
    ck_assert_int_eq(folder_init(&other, dir), 0);
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_int_eq(folder_begin(&other, 0), 0);
    ck_assert_str_ne(other.moved, "");
    ck_assert_int_eq(checkpoint_newest(dir, path), 0);
    folder_fini(&other);
}
END_TEST

START_TEST(what_is_saved_is_what_is_loaded)
{
    struct checkpoint c = sample(3), loaded = sample(0);
    float p[N_PARAMS], s[N_STATE], r[N_RUNNING];
    char path[CHECKPOINT_PATH];

    ck_assert_int_eq(checkpoint_newest(dir, path), 0);
    c = sample(3);
    ck_assert_msg(!checkpoint_save(&c, dir, 5), "%s", train_error());
    loaded.params = p;
    loaded.state = s;
    loaded.running = r;
    loaded.steps = (struct checkpoint_steps){0};
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_msg(!checkpoint_load(&loaded, path), "%s", train_error());
    ck_assert_uint_eq(loaded.epoch, 3);
    ck_assert_uint_eq(loaded.step, 70);
    ck_assert_uint_eq(loaded.seed, 9);
    ck_assert_mem_eq(&loaded.steps, &c.steps, sizeof(c.steps));
    ck_assert_mem_eq(p, params, sizeof(p));
    ck_assert_mem_eq(s, state, sizeof(s));
    ck_assert_mem_eq(r, running, sizeof(r));
}
END_TEST

static size_t read_file(const char *path, unsigned char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(bytes, 1, most, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Loading must fail, name the file, and write nothing. */
static void assert_refused(const char *path, const char *says)
{
    struct checkpoint c = sample(1);
    float p[N_PARAMS] = {7}, s[N_STATE] = {8};

    c.params = p;
    c.state = s;
    ck_assert_int_eq(checkpoint_load(&c, path), -1);
    ck_assert_msg(strstr(train_error(), path) && strstr(train_error(), says),
                  "'%s' has no '%s'", train_error(), says);
    ck_assert_float_eq(p[0], 7);
    ck_assert_float_eq(s[0], 8);
    ck_assert_uint_eq(c.epoch, 1);
}

START_TEST(a_checkpoint_cut_anywhere_is_refused)
{
    static unsigned char bytes[4096];
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];
    size_t n;

    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    path_of(path, "epoch-0001.ckpt");
    n = read_file(path, bytes, sizeof(bytes));
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path, bytes, cut);
        assert_refused(path, cut < HEADER ? "" : "cut off");
    }
    write_file(path, bytes, n + 1);
    assert_refused(path, "cut off");
}
END_TEST

START_TEST(a_checkpoint_damaged_anywhere_is_refused)
{
    static unsigned char bytes[4096];
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];
    size_t n;

    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    path_of(path, "epoch-0001.ckpt");
    n = read_file(path, bytes, sizeof(bytes));
    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= 4;
        write_file(path, bytes, n);
        bytes[at] ^= 4;
        assert_refused(path, at < 40 ? "" : "damaged");
    }
}
END_TEST

START_TEST(a_file_of_another_kind_model_or_optimizer_is_refused)
{
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0001.ckpt");
    assert_refused(path, "No such file");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    assert_refused(path, "not a file");
    ck_assert_int_eq(rmdir(path), 0);
    write_file(path, (const unsigned char *)"hello", 5);
    assert_refused(path, "no checkpoint of this coll_train");
    c.n_params--;
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    assert_refused(path, "another model");
    c = sample(1);
    c.optim = OPTIM_SGD;
    c.n_state = N_PARAMS;
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    assert_refused(path, "the same --opt");
}
END_TEST

/* Write numbers that are not finite into a good file, and its check sum. */
static void spoil_file(const char *path, size_t at, float value)
{
    static unsigned char bytes[4096];
    size_t n = read_file(path, bytes, sizeof(bytes));
    uint32_t crc;

    memcpy(bytes + HEADER + at * sizeof(value), &value, sizeof(value));
    crc = (uint32_t)crc32_z(0, bytes, n - sizeof(crc));
    memcpy(bytes + n - sizeof(crc), &crc, sizeof(crc));
    write_file(path, bytes, n);
}

/* Of the first and last parameter, and of the first and last of the state. */
START_TEST(what_is_not_finite_is_neither_saved_nor_loaded)
{
    static const size_t places[] = {0, N_PARAMS - 1, N_PARAMS,
                                    N_PARAMS + N_STATE - 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY, NAN};
    char good[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
    struct checkpoint c = sample(1);

    path_of(good, "epoch-0001.ckpt");
    path_of(path, "epoch-0002.ckpt");
    ck_assert_int_eq(checkpoint_save(&c, dir, 1), 0);
    for (int i = 0; i < 4; i++) {
        size_t at = places[i];

        c = sample(2);
        *(at < N_PARAMS ? &params[at] : &state[at - N_PARAMS]) = bad[i];
        ck_assert_int_eq(checkpoint_save(&c, dir, 1), -1);
        ck_assert_ptr_nonnull(strstr(train_error(), path));
        ck_assert_ptr_nonnull(strstr(train_error(), "not finite"));
        ck_assert_int_eq(access(path, F_OK), -1);
        ck_assert_int_eq(access(good, F_OK), 0); /* --keep 1 kept it */
        c = sample(2);
        ck_assert_int_eq(checkpoint_save(&c, dir, 0), 0);
        spoil_file(path, at, bad[i]);
        assert_refused(path, "numbers that are not finite");
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

static int exists(const char *name)
{
    char path[CHECKPOINT_PATH];

    path_of(path, name);
    return access(path, F_OK) == 0;
}

START_TEST(the_newest_checkpoints_are_kept_and_nothing_else_is_touched)
{
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-1.ckpt"); /* not a name that this program gives */
    write_file(path, (const unsigned char *)"mine", 4);
    for (uint64_t epoch = 1; epoch <= 12; epoch++) {
        struct checkpoint c = sample(epoch);

        ck_assert_int_eq(checkpoint_save(&c, dir, epoch < 10 ? 0 : 3), 0);
    }
    ck_assert(exists("epoch-0012.ckpt"));
    ck_assert(exists("epoch-0010.ckpt"));
    ck_assert(!exists("epoch-0009.ckpt"));
    ck_assert(!exists("epoch-0001.ckpt"));
    ck_assert(exists("epoch-1.ckpt"));
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_ptr_nonnull(strstr(path, "/epoch-0012.ckpt"));
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_found_out_before)
{
    char path[CHECKPOINT_PATH], below[CHECKPOINT_PATH];

    path_of(path, "new");
    ck_assert_int_eq(checkpoint_probe(path), 0); /* is made */
    ck_assert(exists("new"));
    ck_assert_int_eq(rmdir(path), 0); /* and is empty */
    path_of(path, "file");
    write_file(path, (const unsigned char *)"x", 1);
    path_of(below, "file/below");
    ck_assert_int_eq(checkpoint_probe(path), -1);
    ck_assert_int_eq(checkpoint_probe(below), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "--checkpoint"));
}
END_TEST

START_TEST(a_save_that_fails_leaves_the_folder_as_it_was)
{
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0001.ckpt");
    ck_assert_int_eq(mkdir(path, 0700), 0); /* rename cannot replace it */
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), path));
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* no draft is left */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_state");
    TCase *flags = tcase_create("flags"), *optim = tcase_create("optim");
    TCase *files = tcase_create("checkpoint");

    tcase_add_test(flags,
                   flags_come_with_a_space_or_an_equals_sign_or_an_underscore);
    tcase_add_test(flags, without_flags_the_defaults_hold);
    tcase_add_test(flags, row17_a_profile_has_a_prefix_or_none);
    tcase_add_test(flags, a_bad_command_line_is_refused_in_one_sentence);
    tcase_add_test(flags, row21_a_global_batch_is_that_of_all_ranks_and_parts);
    tcase_add_test(flags, a_flag_of_any_length_is_survived);
    suite_add_tcase(suite, flags);

    tcase_add_test(optim, sgd_moves_as_by_hand);
    tcase_add_test(optim, nesterov_moves_as_torch_says);
    tcase_add_test(optim, adam_moves_as_the_paper_says);
    suite_add_tcase(suite, optim);

    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_set_timeout(files, 300);
    tcase_add_test(files, adagrad_with_weight_decay_goes_the_way_of_torch);
    tcase_add_loop_test(
        files, row21_a_step_in_parts_has_the_bits_of_a_whole_one, 0, 4);
    tcase_add_test(files, row22_numbers_of_16_bits_keep_their_bits);
    tcase_add_test(files, row22_rounding_goes_to_the_nearest);
    tcase_add_test(files, two_runs_do_not_share_a_folder);
    tcase_add_test(files, what_is_saved_is_what_is_loaded);
    tcase_add_test(files, a_checkpoint_cut_anywhere_is_refused);
    tcase_add_test(files, a_checkpoint_damaged_anywhere_is_refused);
    tcase_add_test(files,
                   a_file_of_another_kind_model_or_optimizer_is_refused);
    tcase_add_test(files, what_is_not_finite_is_neither_saved_nor_loaded);
    tcase_add_test(files,
                   the_newest_checkpoints_are_kept_and_nothing_else_is_touched);
    tcase_add_test(files, a_folder_that_cannot_be_written_is_found_out_before);
    tcase_add_test(files, a_save_that_fails_leaves_the_folder_as_it_was);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
