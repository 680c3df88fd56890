/* SPDX-License-Identifier: BSD-3-Clause */
/* program_help.c - --help, printed from the table of options. */
#include "tools/common/program.h"

#include <errno.h>
#include <string.h>

#define COLUMN 26 /* where the sentences begin */
#define WIDTH 79

/* Print the text's words in lines that begin at COLUMN.  `at` is the column at which
 * the current line ends. */
static void print_wrapped(FILE *out, const char *text, int at)
{
    while (*text) {
        int len = (int)strcspn(text, " \n");

        if (at + 1 + len > WIDTH && at > COLUMN) {
            fprintf(out, "\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", len, text);
        at += len;
        text += len;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

/* Print "  -o, --output FILE", and return how long that is. */
static int print_name(FILE *out, const struct program_option *o)
{
    int is_one_letter = o->letter && !o->name[1];
    int len = o->letter ? fprintf(out, "  -%c%s", o->letter,
                                  is_one_letter ? "" : ", ")
                        : fprintf(out, "      ");

    if (!is_one_letter)
        len += fprintf(out, "--%s", o->name);
    if (o->value)
        len += fprintf(out, "%s%s", *o->value == '[' ? "" : " ", o->value);
    return len;
}

static void print_option(FILE *out, const struct program_option *o)
{
    char text[1024];
    int len = print_name(out, o);

    if (len + 2 > COLUMN) {
        fputc('\n', out);
        len = 0;
    }
    fprintf(out, "%*s", COLUMN - len, "");
    if (o->standard && *o->standard)
        snprintf(text, sizeof(text), "%s (default %s)", o->help, o->standard);
    else
        snprintf(text, sizeof(text), "%s", o->help);
    print_wrapped(out, text, COLUMN);
}

/* Each line of `usage` is one form of the command. */
static void print_usage(FILE *out, const struct program *p)
{
    const char *line = p->usage, *label = "Usage:";

    do {
        int len = (int)strcspn(line, "\n");

        fprintf(out, "%s %s %.*s\n", label, p->name, len, line);
        label = "  or: ";
        line += len;
    } while (*line && *++line);
}

void program_help(const struct program *p, FILE *out)
{
    print_usage(out, p);
    fprintf(out, "%s\n", p->about);
    if (*p->options->name)
        fputs("\nOptions:\n", out);
    for (const struct program_option *o = p->options; o->name; o++) {
        if (!*o->name)
            fprintf(out, "\n%s:\n", o->help);
        else if (o->help && (!p->has || p->has(p, o)))
            print_option(out, o);
    }
    fprintf(out,
            "%s  -h, --help              print this and exit\n"
            "  -V, --version           print the version and exit\n",
            *p->options->name ? "" : "\n");
    if (p->notes)
        fprintf(out, "\n%s", p->notes);
}

int program_finish(const struct program *p, int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr,
            "%s: cannot write the output: %s; make room or write elsewhere\n",
            p->name, strerror(errno ? errno : EIO));
    return 1;
}
