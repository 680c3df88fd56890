/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - a command line, read by getopt_long() from a program's table. */
#include "tools/common/program.h"
#include "tools/common/near.h"
#include "tools/common/speaks.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 96 /* of a table */
#define MOST_NAME 32 /* bytes of an option's name, its end included */
#define NEAR 3       /* letters that a name may be wrong in, for a hint */

/* For a long option getopt_long() returns FIRST_ROW plus the index of its row. */
enum { FIRST_ROW = 256, IS_HELP = FIRST_ROW + MOST_ROWS, IS_VERSION };

/* The table as getopt_long() reads it: a name with '-' is there a second time
 * with '_'. */
struct getopt_table {
    struct option longs[2 * MOST_ROWS + 3];
    char shorts[3 * MOST_ROWS];
    char names[MOST_ROWS][MOST_NAME];
};

/* ---- what is wrong -------------------------------------------------------- */

int program_refuse(const struct program *p, const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (p->refuse)
        p->refuse(text);
    else if (!p->is_of_job || speaks_for_job())
        fprintf(stderr, "%s: %s\n", p->name, text);
    return PROGRAM_USAGE;
}

/* Return the option's name that this one is meant to be, or NULL. */
static const char *nearest(const struct program *p, const char *name)
{
    const char *best = NULL;
    size_t least = NEAR;

    for (const struct program_option *o = p->options; o->name; o++) {
        size_t d = near_distance(name, o->name);

        if (d < least && 2 * d < strlen(name)) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

static const char *hint_for(const struct program *p, const char *name)
{
    for (const struct program_hint *h = p->hints; h && h->name; h++)
        if (!strcmp(h->name, name))
            return h->instead;
    return NULL;
}

/* `dashes` is how the user wrote it: "-" or "--". */
static void refuse_name(const struct program *p, const char *dashes,
                        const char *name)
{
    const char *instead = hint_for(p, name), *near = nearest(p, name);

    if (instead)
        program_refuse(p, "%s%s is no option of %s: %s", dashes, name, p->name,
                       instead);
    else if (near)
        program_refuse(p,
                       "unknown option %s%s; did you mean --%s? see %s "
                       "--help",
                       dashes, name, near, p->name);
    else
        program_refuse(p, "unknown option %s%.60s%s; see %s --help", dashes,
                       name, strlen(name) > 60 ? "..." : "", p->name);
}

/* ---- names ---------------------------------------------------------------- */

/* Copy "some_name=value" as "some-name". */
static void read_name(char *name, size_t room, const char *text)
{
    size_t n = strcspn(text, "=");

    n = n < room ? n : room - 1;
    for (size_t i = 0; i < n; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    name[n] = '\0';
}

/* Return the option called so, or NULL. */
static const struct program_option *look_up(const struct program *p,
                                            const char *name)
{
    for (const struct program_option *o = p->options; o->name; o++)
        if (*o->name && !strcmp(o->name, name))
            return o;
    return NULL;
}

const struct program_option *program_find(const struct program *p,
                                          const char *text)
{
    const struct program_option *option;
    char name[128];

    read_name(name, sizeof(name), text);
    option = look_up(p, name);
    if (!option)
        refuse_name(p, "--", name);
    return option;
}

int program_stands_alone(const struct program_option *o)
{
    return !o->value || *o->value == '[';
}

/* ---- the table for getopt ------------------------------------------------- */

static int argument_of(const struct program_option *o)
{
    return !o->value          ? no_argument
           : *o->value == '[' ? optional_argument
                              : required_argument;
}

static void add_letter(char *shorts, const struct program_option *o)
{
    static const char *const colons[] = {[no_argument] = "",
                                         [required_argument] = ":",
                                         [optional_argument] = "::"};
    size_t n = strlen(shorts);

    shorts[n++] = (char)o->letter;
    strcpy(shorts + n, colons[argument_of(o)]);
}

static void fill_table(struct getopt_table *t, const struct program *p)
{
    struct option *next = t->longs;
    int row = 0;

    strcpy(t->shorts, p->is_launcher ? "+:hV" : ":hV");
    for (const struct program_option *o = p->options; o->name; o++, row++) {
        char *other = t->names[row];

        if (!*o->name)
            continue;
        *next++ =
            (struct option){o->name, argument_of(o), NULL, FIRST_ROW + row};
        snprintf(other, MOST_NAME, "%s", o->name);
        for (char *c = other; *c; c++)
            if (*c == '-')
                *c = '_';
        if (strcmp(other, o->name))
            *next++ =
                (struct option){other, argument_of(o), NULL, FIRST_ROW + row};
        if (o->letter)
            add_letter(t->shorts, o);
    }
    *next++ = (struct option){"help", no_argument, NULL, IS_HELP};
    *next++ = (struct option){"version", no_argument, NULL, IS_VERSION};
    *next = (struct option){NULL, 0, NULL, 0};
}

/* ---- reading -------------------------------------------------------------- */

/* Return the row of getopt's answer; NULL for --help, --version and no option. */
static const struct program_option *row_of(const struct program *p, int answer)
{
    if (answer >= IS_HELP)
        return NULL;
    if (answer >= FIRST_ROW)
        return &p->options[answer - FIRST_ROW];
    for (const struct program_option *o = p->options; o->name; o++)
        if (*o->name && o->letter == answer)
            return o;
    return NULL;
}

/* Return the word in which getopt found its last option. */
static const char *last_word(char **argv)
{
    const char *word = argv[optind - 1];

    return optarg == word ? argv[optind - 2] : word;
}

/* getopt_long() takes "--epoch" for --epochs.  A script that says so would
 * break when an option of a similar name is added, so names must be whole. */
static int is_whole_name(const char *word, const char *name)
{
    size_t dashes = strspn(word, "-");
    char typed[128];

    read_name(typed, sizeof(typed), word + dashes);
    return !strcmp(typed, name);
}

/* A letter that is no option may begin a name of other programs, such as -np. */
static void refuse_letter(const struct program *p, char **argv)
{
    char letter[] = {(char)optopt, '\0'};

    for (int i = optind - 1; i <= optind; i++) /* getopt may not have left
                                                * the word yet */
        if (argv[i] && argv[i][0] == '-' && hint_for(p, argv[i] + 1)) {
            refuse_name(p, "-", argv[i] + 1);
            return;
        }
    refuse_name(p, "-", letter);
}

static void refuse_long(const struct program *p, const char *word)
{
    size_t dashes = strspn(word, "-");
    char name[128];

    read_name(name, sizeof(name), word + dashes);
    refuse_name(p, dashes > 1 ? "--" : "-", name);
}

/* getopt has refused a word. */
static void refuse_word(const struct program *p, int answer, char **argv)
{
    const struct program_option *o = optopt ? row_of(p, optopt) : NULL;
    char letter[] = {(char)optopt, '\0'};
    int is_letter = optopt && optopt < FIRST_ROW;

    if (answer == ':' && o)
        program_refuse(p, "option %s%s needs a value: %s; see %s --help",
                       is_letter ? "-" : "--", is_letter ? letter : o->name,
                       o->value, p->name);
    else if (optopt >= FIRST_ROW)
        program_refuse(p, "option --%s takes no value; see %s --help",
                       o                   ? o->name
                       : optopt == IS_HELP ? "help"
                                           : "version",
                       p->name);
    else if (is_letter)
        refuse_letter(p, argv);
    else
        refuse_long(p, argv[optind - 1]);
}

/* The word is the beginning of an option's name, or is an option of other
 * programs. */
static int refuse_part(const struct program *p, const char *word,
                       const char *whole)
{
    size_t dashes = strspn(word, "-");
    char name[128];

    read_name(name, sizeof(name), word + dashes);
    if (hint_for(p, name))
        refuse_name(p, dashes > 1 ? "--" : "-", name);
    else
        program_refuse(p,
                       "unknown option %.*s%s; did you mean --%s? see %s "
                       "--help",
                       (int)dashes, word, name, whole, p->name);
    return PROGRAM_USAGE;
}

static int refuse_use(const struct program *p, const struct program_option *o)
{
    return program_refuse(p, "%s has no use for --%s; see --help", p->name,
                          o->name);
}

/* Act on one option: 0, or the status after a sentence. */
static int take(const struct program *p, int answer, char **argv, void *into)
{
    const struct program_option *o = row_of(p, answer);

    if (answer >= FIRST_ROW && !is_whole_name(last_word(argv), o->name))
        return refuse_part(p, last_word(argv), o->name);
    return p->has && !p->has(p, o) ? refuse_use(p, o)
                                   : program_set(p, o, optarg, into);
}

/* A command line that is being read. */
struct reading {
    const struct program *p;
    int argc;
    char **argv;
    void *into;
    int status; /* the answer */
};

/* Some write '_' for only a part of the '-' in a name, which getopt does not
 * know.  Take such a word and its value.  Result: 1 if it is such a word, and
 * r->status. */
static int take_mixed(struct reading *r)
{
    const struct program *p = r->p;
    const char *word = r->argv[optind - 1], *value = strchr(word, '=');
    const struct program_option *o;
    char name[128];

    read_name(name, sizeof(name), word + strspn(word, "-"));
    o = optopt ? NULL : look_up(p, name);
    if (!o || (value && !o->value))
        return 0;
    if (!value && !program_stands_alone(o) && optind == r->argc)
        return 0;
    if (value)
        value++;
    else if (!program_stands_alone(o))
        value = r->argv[optind++];
    r->status = p->has && !p->has(p, o) ? refuse_use(p, o)
                                        : program_set(p, o, value, r->into);
    return 1;
}

/* Answer --help and --version.  Result: 1 if it was one of them. */
static int answers(const struct program *p, int answer)
{
    int is_help = answer == 'h' || answer == IS_HELP;

    if (!is_help && answer != 'V' && answer != IS_VERSION)
        return 0;
    if (p->is_of_job && !speaks_for_job())
        return 1;
    if (is_help)
        program_help(p, stdout);
    else
        printf("%s (libcoll) %s\n", p->name, PACKAGE_VERSION);
    return 1;
}

int program_defaults(const struct program *p, void *into)
{
    for (const struct program_option *o = p->options; o->name; o++)
        if (o->standard && *o->name && program_set(p, o, o->standard, into))
            return -1;
    return 0;
}

/* Act on getopt's answer.  Result: 0 to go on, or 1 to end with r->status. */
static int act(struct reading *r, int answer)
{
    if (answers(r->p, answer)) {
        r->status = program_finish(r->p, 0);
        return 1;
    }
    if (answer == '?' && take_mixed(r))
        return r->status != 0;
    if (answer == '?' || answer == ':') {
        refuse_word(r->p, answer, r->argv);
        r->status = PROGRAM_USAGE;
        return 1;
    }
    r->status = take(r->p, answer, r->argv, r->into);
    return r->status != 0;
}

int program_read(const struct program *p, int argc, char **argv, void *into,
                 int *status)
{
    int (*next)(int, char *const *, const char *, const struct option *,
                int *) = p->is_launcher ? getopt_long_only : getopt_long;
    struct reading reading = {p, argc, argv, into, 0};
    struct getopt_table table;
    int answer;

    fill_table(&table, p);
    opterr = 0;
    optind = 0; /* begin anew */
    while ((answer = next(argc, argv, table.shorts, table.longs, NULL)) != -1)
        if (act(&reading, answer))
            break;
    *status = reading.status;
    if (answer != -1)
        return -1;
    if (p->most_words < 0 || argc - optind <= p->most_words)
        return optind;
    *status = program_refuse(p, "unexpected argument %s; see %s --help",
                             argv[optind + p->most_words], p->name);
    return -1;
}
