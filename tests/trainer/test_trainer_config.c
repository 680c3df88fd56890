/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_config.c - flags from a file. */
#include "tests/support/suite.h"
#include "trainer/args.h"
#include "trainer/error.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/coll-config-XXXXXX";

static void write_text(const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

/* Parse the file of this text, and a flag before or behind its name. */
static int parse(struct args *args, const char *text, const char *before,
                 const char *behind)
{
    char words[3][64] = {"--config"};
    char *argv[5] = {words[0]};
    int argc = 1;

    write_text(text, strlen(text));
    if (before) {
        snprintf(words[1], sizeof(words[1]), "%s", before);
        argv[argc++] = words[1];
    }
    argv[argc++] = words[0];
    argv[argc++] = path;
    if (behind) {
        snprintf(words[2], sizeof(words[2]), "%s", behind);
        argv[argc++] = words[2];
    }
    return args_parse(args, argc, argv);
}

START_TEST(a_file_has_a_flag_a_line)
{
    struct args a;

    ck_assert_msg(!parse(&a,
                         "# a job\n"
                         "\n"
                         "batch_size=128\r\n"
                         "   lr\t=  0.25   # of one rank\n"
                         "fp16-allreduce\n"
                         "#epochs = 9\n"
                         "profile\n"
                         "opt = sgd # epochs = 8\n"
                         "checkpoint = a folder#1",
                         NULL, NULL),
                  "%s", train_error());
    ck_assert_uint_eq(a.batch_size, 128);
    ck_assert_double_eq(a.lr, 0.25);
    ck_assert_int_eq(a.fp16_allreduce, 1);
    ck_assert_uint_eq(a.epochs, 3);
    ck_assert_str_eq(a.profile, "1");
    ck_assert_str_eq(a.checkpoint, "a folder#1");
    args_fini(&a);
    ck_assert_int_eq(parse(&a, "", NULL, NULL), 0);
    ck_assert_uint_eq(a.batch_size, 64);
    args_fini(&a);
}
END_TEST

/* _i: on which side of --config it stands */
START_TEST(the_command_line_goes_before_the_file)
{
    const char *word = "--epochs=7";
    struct args a;

    ck_assert_int_eq(
        parse(&a, "epochs = 5\nseed = 9\n", _i ? word : NULL, _i ? NULL : word),
        0);
    ck_assert_uint_eq(a.epochs, 7);
    ck_assert_uint_eq(a.seed, 9);
    args_fini(&a);
}
END_TEST

START_TEST(a_bad_line_is_refused_by_its_number)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"epochs = 0", ":1: --epochs 0 is not valid: it must be a whole"},
        {"\n\nepoch = 3\n", ":3: unknown option --epoch; did you mean --epochs?"},
        {"# no\nepochs\n", ":2: epochs needs a value: N"},
        {"epochs 3", ":1: unknown option --epochs 3; did you mean --epochs?"},
        {"epochs =", ":1: --epochs '' is not valid"},
        {"json =", ":1: --json '' is not valid"},
        {"dry-run = yes", ":1: dry-run takes no value; write it alone"},
        {"--epochs = 3", ":1: '--epochs = 3' is not understood: a line is"},
        {"= 3", ":1: unknown option --;"},
        {"seed = 1\nconfig = x", ":2: --config names one file"},
    };
    struct args a;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(parse(&a, cases[i].text, NULL, NULL), -1);
        ck_assert_msg(!strncmp(train_error(), path, strlen(path)) &&
                          strstr(train_error(), cases[i].says),
                      "'%s' has no '%s'", train_error(), cases[i].says);
        ck_assert_ptr_null(strchr(train_error(), '\n'));
    }
    /* what only all flags together show has no line */
    ck_assert_int_eq(parse(&a, "batch-size = 3", NULL, "--global-batch-size=6"),
                     -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "give one of them"));
}
END_TEST

START_TEST(what_is_no_text_is_no_file_of_flags)
{
    char *argv[] = {path, (char *)"--config", path, NULL};
    struct args a;

    write_text("epochs = 3\n\0seed = 1\n", 21);
    ck_assert_int_eq(args_parse(&a, 3, argv), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "is no text"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(args_parse(&a, 3, argv), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "No such file"));
}
END_TEST

static void set_up(void)
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void tear_down(void) { unlink(path); }

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_config");
    TCase *config = suite_case(suite, "config", 20);

    tcase_add_unchecked_fixture(config, set_up, tear_down);
    tcase_add_test(config, a_file_has_a_flag_a_line);
    tcase_add_loop_test(config, the_command_line_goes_before_the_file, 0, 2);
    tcase_add_test(config, a_bad_line_is_refused_by_its_number);
    tcase_add_test(config, what_is_no_text_is_no_file_of_flags);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
