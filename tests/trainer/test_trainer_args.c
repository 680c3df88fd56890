/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_args.c - the command line. */
#include "tests/support/suite.h"
#include "trainer/args.h"
#include "trainer/error.h"
#include "trainer/optim.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    ck_assert_ptr_nonnull(strstr(train_error(), "unexpected argument mine"));
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

static const struct {
    const char *words[4], *says;
} wrong[] = {
    {{"--epoch", "3"}, "unknown option --epoch; did you mean --epochs?"},
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
    {{"--synthetic", "--lr-schedule=cosine"}, "has no epochs, which"},
    {{"--batch-size", "64", "--global-batch-size=64"}, "give one of them"},
    {{"--global-batch-size", "0"}, "1 or more"},
    {{"--target-acc", "99"}, "a share of 1, such as 0.99"},
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
    {{"train"}, "unexpected argument train"},
    {{"--", "--epochs"}, "unexpected argument --epochs"},
    {{"-q", "2"}, "unknown option -q"},
    {{"-n", "2"}, "the launcher says how many ranks"},
    {{"--resume", "auto"}, "--checkpoint DIR"},
    {{"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
     "unknown option"},
};

START_TEST(a_bad_command_line_is_refused_in_one_sentence)
{
    struct args a;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(parse(&a, wrong[i].words), -1);
        ck_assert_msg(strstr(train_error(), wrong[i].says), "'%s' has no '%s'",
                      train_error(), wrong[i].says);
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

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_args");
    TCase *flags = suite_case(suite, "flags", 20);

    tcase_add_test(flags,
                   flags_come_with_a_space_or_an_equals_sign_or_an_underscore);
    tcase_add_test(flags, row17_a_profile_has_a_prefix_or_none);
    tcase_add_test(flags, without_flags_the_defaults_hold);
    tcase_add_test(flags, a_bad_command_line_is_refused_in_one_sentence);
    tcase_add_test(flags, row21_a_global_batch_is_that_of_all_ranks_and_parts);
    tcase_add_test(flags, a_flag_of_any_length_is_survived);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
