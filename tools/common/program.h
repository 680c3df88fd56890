/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - the command line of a program, as a table of options.
 *
 * Every program of libcoll describes itself by one `struct program`: getopt_long()
 * reads the command line by it, and --help is printed from it, in the layout that
 * help2man reads.  --help and --version need no row of their own.
 */
#ifndef COLL_TOOLS_COMMON_PROGRAM_H
#define COLL_TOOLS_COMMON_PROGRAM_H

#include <stddef.h>
#include <stdio.h>

#define PROGRAM_USAGE 2 /* the exit status of a wrong command line */

/* How an option's value is read, and the type of the field that takes it. */
enum option_kind {
    OPTION_SWITCH,   /* int, set to 1; the option has no value */
    OPTION_TEXT,     /* const char *, not empty */
    OPTION_WORD,     /* const char *, one of the words "a|b|c" of `value` */
    OPTION_CHOICE,   /* int, the index of the word */
    OPTION_INT,      /* int, least to most */
    OPTION_LONG,     /* long, least to most */
    OPTION_U64,      /* uint64_t, least to most */
    OPTION_REAL,     /* double, least to most */
    OPTION_POSITIVE, /* double, above 0 and below what a float can hold */
    OPTION_SHARE,    /* double, from 0 to below 1 */
    OPTION_SIZE,     /* size_t, as "64K" */
    OPTION_CALL,     /* take() reads it */
    OPTION_NONE /* nothing is done: it is there for other launchers' lines */
};

struct program;

struct program_option {
    const char
        *name;  /* without dashes; "" for a heading of --help; NULL ends the
                         table */
    int letter; /* 'b', or 0 */
    enum option_kind kind;
    size_t at; /* offset of the field */
    const char
        *value; /* what --help calls the value; NULL: it has none; "[=N]":
                             it may be left out, and only = gives it */
    const char *standard; /* the default as a user would write it, or NULL */
    const char *help;     /* NULL: --help leaves the option out */
    /* Read a value, NULL where it is left out.  Result: 0, or what
     * program_refuse() returns. */
    int (*take)(const struct program *p, const char *text, void *into);
    double least, most; /* of INT, LONG, U64 and REAL; most 0: no limit */
};

/* An option of other programs, and what to do instead. */
struct program_hint {
    const char *name, *instead;
};

struct program {
    const char *name; /* "coll_tune" */
    const char
        *usage; /* "[OPTION]...": lines behind the name, one for each form */
    const char *about; /* sentences below the usage */
    const char *notes; /* sentences below the options, or NULL */
    const struct program_option *options;
    const struct program_hint *hints; /* ends with a NULL name; or NULL */
    int most_words;  /* arguments that are no options; -1: any number */
    int is_launcher; /* the first such word ends the options, and "-name" is
                          "--name" */
    int is_of_job;   /* every rank reads the command line, and one of them
                          speaks */
    /* Say why the command line is wrong; NULL: on standard error. */
    void (*refuse)(const char *sentence);
    /* Is the option of use here?  NULL: every one is. */
    int (*has)(const struct program *p, const struct program_option *option);
    const void *context; /* of has() and take() */
};

/* Set the fields of all options that have a default.
 *
 * Result:    0; not 0 is a wrong table.
 */
int program_defaults(const struct program *p, void *into);

/* Read a command line over what *into holds.
 *
 * Shapes:    argv as main() gets it; its words change their order.  '_' in the name
 *            of an option counts as '-'.
 * Result:    the index of the first word that is no option, argc where there is
 *            none; or -1 to end with *status: after --help, --version, or a sentence
 *            about what is wrong.
 * Ownership: texts in *into stay argv's.
 */
int program_read(const struct program *p, int argc, char **argv, void *into,
                 int *status);

/* Return the option of that name, in which '_' counts as '-'; or NULL after a
 * sentence, with a hint where there is one. */
const struct program_option *program_find(const struct program *p,
                                          const char *name);

/* May the option stand without a value? */
int program_stands_alone(const struct program_option *option);

/* Give an option a value, NULL where it is left out.
 *
 * Result:    0, or PROGRAM_USAGE after a sentence.
 */
int program_set(const struct program *p, const struct program_option *option,
                const char *text, void *into);

/* Report what is wrong, in one sentence that ends with the remedy.  Returns
 * PROGRAM_USAGE. */
int program_refuse(const struct program *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Say that an option's value is not what it must be. */
int program_refuse_value(const struct program *p, const char *name,
                         const char *text, const char *wants);

/* Return the index of a word in "a|b|c", or -1. */
int program_word(const char *word, const char *words);

void program_help(const struct program *p, FILE *out);

/* Flush stdout, since a full disk may only be noticed now.
 *
 * Result:    the status; or 1 after an error message.
 */
int program_finish(const struct program *p, int status);

#endif
