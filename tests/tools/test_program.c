/* SPDX-License-Identifier: BSD-3-Clause */
/* test_program.c - command lines of all programs: what is taken, what is refused. */
#include "tests/support/suite.h"
#include "tools/common/program.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fields {
    int is_quiet, level, form, n_calls;
    const char *name;
    double rate;
    size_t bytes;
};

static char said[512];

static void note(const char *sentence)
{
    snprintf(said, sizeof(said), "%s", sentence);
}

static int take_calls(const struct program *p, const char *text, void *into)
{
    (void)p;
    ((struct fields *)into)->n_calls = text ? atoi(text) : 10;
    return 0;
}

#define AT(field) offsetof(struct fields, field)

static const struct program_option options[] = {
    {.name = "", .help = "Some"},
    {"quiet", 'q', OPTION_SWITCH, AT(is_quiet), NULL, NULL, .help = "be quiet"},
    {"level", 'l', OPTION_INT, AT(level), "N", "3", .help = "a level",
     .least = 1, .most = 9},
    {"output-form", 0, OPTION_CHOICE, AT(form), "text|json|csv", "json",
     .help = "the form"},
    {"name", 'n', OPTION_TEXT, AT(name), "NAME", NULL,
     .help = "a sentence that is so long that it goes on in the next line, and "
             "in the one after it"},
    {"rate", 0, OPTION_POSITIVE, AT(rate), "X", NULL, .help = "a rate"},
    {"bytes-of-all", 'b', OPTION_SIZE, AT(bytes), "SIZE", NULL,
     .help = "a size"},
    {"calls", 0, OPTION_CALL, 0, "[=N]", NULL, .help = "calls",
     .take = take_calls},
    {"also-quiet", 0, OPTION_SWITCH, AT(is_quiet), NULL, NULL, .help = NULL},
    {.name = NULL},
};

static const struct program_hint hints[] = {
    {"np", "the launcher says it"}, {"verbose", "leave --quiet out"}, {0}};

static struct program program = {.name = "prog",
                                 .usage = "[OPTION]...\nFILE",
                                 .about = "Do something.",
                                 .notes = "Notes.\n",
                                 .options = options,
                                 .hints = hints,
                                 .most_words = 1,
                                 .refuse = note};

/* Read words, which end with NULL; returns what program_read() does. */
static int parse(struct fields *f, int *status, const char *const *words)
{
    static char text[12][64];
    static char *argv[13];
    int argc = 1;

    argv[0] = text[0];
    for (; words[argc - 1]; argc++) {
        snprintf(text[argc], sizeof(text[0]), "%s", words[argc - 1]);
        argv[argc] = text[argc];
    }
    argv[argc] = NULL;
    *f = (struct fields){.is_quiet = 0};
    said[0] = '\0';
    ck_assert_int_eq(program_defaults(&program, f), 0);
    return program_read(&program, argc, argv, f, status);
}

#define PARSE(f, status, ...)                                                  \
    parse(f, status, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(every_spelling_of_an_option_is_taken)
{
    struct fields f;
    int st;

    ck_assert_int_eq(PARSE(&f, &st, "-q", "--level=4", "--rate", "0.5"), 5);
    ck_assert_int_eq(f.is_quiet, 1);
    ck_assert_int_eq(f.level, 4);
    ck_assert_double_eq(f.rate, 0.5);
    ck_assert_int_eq(f.form, 1);
    ck_assert_int_eq(PARSE(&f, &st, "-ql5", "--output_form", "csv"), 4);
    ck_assert_int_eq(f.level, 5);
    ck_assert_int_eq(f.form, 2);
    ck_assert_int_eq(PARSE(&f, &st, "--bytes_of-all", "4K", "-n", "x"), 5);
    ck_assert_uint_eq(f.bytes, 4096);
    ck_assert_str_eq(f.name, "x");
    ck_assert_int_eq(PARSE(&f, &st, "--bytes-of_all=1M", "--calls"), 3);
    ck_assert_uint_eq(f.bytes, 1 << 20);
    ck_assert_int_eq(f.n_calls, 10);
    ck_assert_int_eq(PARSE(&f, &st, "--calls=3", "--also-quiet"), 3);
    ck_assert_int_eq(f.n_calls, 3);
    ck_assert_int_eq(f.is_quiet, 1);
    ck_assert_int_eq(PARSE(&f, &st, "word", "-q"), 2);
    ck_assert_int_eq(f.is_quiet, 1);
    ck_assert_int_eq(PARSE(&f, &st, "--", "-q"), 2);
    ck_assert_int_eq(f.is_quiet, 0);
}
END_TEST

static const struct {
    const char *words[3], *says;
} wrong[] = {
    {{"--quite"}, "unknown option --quite; did you mean --quiet? see prog"},
    {{"--lev", "3"}, "unknown option --lev; did you mean --level?"},
    {{"--frobnicate"}, "unknown option --frobnicate; see prog --help"},
    {{"-z"}, "unknown option -z; see prog --help"},
    {{"-qz"}, "unknown option -z"},
    {{"--np", "2"}, "--np is no option of prog: the launcher says it"},
    {{"--verbose"}, "--verbose is no option of prog: leave --quiet out"},
    {{"--level"}, "option --level needs a value: N"},
    {{"--output_form"}, "needs a value: text|json|csv"},
    {{"-l"}, "option -l needs a value: N"},
    {{"--quiet=yes"}, "option --quiet takes no value"},
    {{"--help=yes"}, "option --help takes no value"},
    {{"--level", "0"},
     "--level 0 is not valid: it must be a whole number from "
     "1 to 9"},
    {{"--level", "9999999999999999999"}, "from 1 to 9"},
    {{"--level", ""}, "--level '' is not valid"},
    {{"--output-form", "xml"}, "it must be text|json|csv"},
    {{"--name="}, "--name '' is not valid: it must be NAME"},
    {{"--rate", "nan"}, "a number above 0"},
    {{"-b", "4X"}, "a size such as 8, 4K or 64M"},
    {{"one", "two"}, "unexpected argument two; see prog --help"},
};

/* _i: the line of the table */
START_TEST(what_is_wrong_gets_one_sentence)
{
    struct fields f;
    int st;

    ck_assert_int_eq(parse(&f, &st, wrong[_i].words), -1);
    ck_assert_int_eq(st, PROGRAM_USAGE);
    ck_assert_msg(strstr(said, wrong[_i].says), "'%s' has no '%s'", said,
                  wrong[_i].says);
}
END_TEST

START_TEST(help_has_every_option_in_lines_of_80)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    program_help(&program, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_msg(!strncmp(text,
                           "Usage: prog [OPTION]...\n  or:  prog FILE\n"
                           "Do something.\n\nSome:\n  -q, --quiet",
                           60),
                  "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\n      --output-form text|json|csv\n"
                                       "                          the form "
                                       "(default json)\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n  -V, --version"));
    ck_assert_ptr_null(strstr(text, "also-quiet"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_uint_lt(strlen(line), 81);
    free(text);
}
END_TEST

START_TEST(a_launcher_leaves_the_program_its_options)
{
    struct fields f;
    int st;

    program.is_launcher = 1;
    program.most_words = -1;
    ck_assert_int_eq(PARSE(&f, &st, "-level", "4", "run", "-q"), 3);
    ck_assert_int_eq(f.level, 4);
    ck_assert_int_eq(f.is_quiet, 0);
    ck_assert_int_eq(PARSE(&f, &st, "-also_quiet", "run"), 2);
    ck_assert_int_eq(f.is_quiet, 1);
    ck_assert_int_eq(PARSE(&f, &st, "-zz", "run"), -1);
    ck_assert_ptr_nonnull(strstr(said, "unknown option -zz"));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("program");
    TCase *lines = suite_case(suite, "lines", 20);

    tcase_add_test(lines, every_spelling_of_an_option_is_taken);
    tcase_add_loop_test(lines, what_is_wrong_gets_one_sentence, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(lines, help_has_every_option_in_lines_of_80);
    tcase_add_test(lines, a_launcher_leaves_the_program_its_options);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
