/* SPDX-License-Identifier: BSD-3-Clause */
/* program_value.c - read an option's value from text into its field. */
#include "tools/common/program.h"
#include "tools/common/size.h"

#include <errno.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int program_word(const char *word, const char *words)
{
    size_t len = strlen(word);

    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");

        if (n == len && !memcmp(word, words, n))
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

int program_refuse_value(const struct program *p, const char *name,
                         const char *text, const char *wants)
{
    return program_refuse(p, "%s%s %s is not valid: it must be %s",
                          name[1] ? "--" : "-", name, *text ? text : "''",
                          wants);
}

static void store_whole(const struct program_option *o, int64_t value,
                        void *field)
{
    if (o->kind == OPTION_INT)
        *(int *)field = (int)value;
    else if (o->kind == OPTION_LONG)
        *(long *)field = (long)value;
    else
        *(uint64_t *)field = (uint64_t)value;
}

static int set_whole(const struct program *p, const struct program_option *o,
                     const char *text, void *field)
{
    int64_t most = o->most > 0 ? (int64_t)o->most : INT32_MAX, value;
    char wants[80], *end;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno &&
        value >= (int64_t)o->least && value <= most) {
        store_whole(o, value, field);
        return 0;
    }
    if (o->most > 0 && o->most < INT32_MAX)
        snprintf(wants, sizeof(wants), "a whole number from %.0f to %.0f",
                 o->least, o->most);
    else
        snprintf(wants, sizeof(wants), "a whole number, %.0f or more",
                 o->least);
    return program_refuse_value(p, o->name, text, wants);
}

static int set_real(const struct program *p, const struct program_option *o,
                    const char *text, double *field)
{
    double most = o->most > 0 ? o->most : DBL_MAX, value;
    char wants[80], *end;

    value = strtod(text, &end);
    if (end != text && !*end && value >= o->least && value <= most) {
        *field = value;
        return 0;
    }
    snprintf(wants, sizeof(wants), "a number from %g to %g", o->least, most);
    return program_refuse_value(p, o->name, text, wants);
}

/* A positive number is refused where a float would make it 0 or infinite. */
static int set_bounded(const struct program *p, const struct program_option *o,
                       const char *text, double *field)
{
    int is_share = o->kind == OPTION_SHARE;
    double least = is_share ? 0 : (double)FLT_MIN;
    double most = is_share ? 1 : (double)FLT_MAX;
    char *end;
    double value = strtod(text, &end);

    if (end != text && !*end && value >= least && value < most) {
        *field = value;
        return 0;
    }
    return program_refuse_value(p, o->name, text,
                                is_share ? "a number from 0 to below 1"
                                         : "a number above 0 and below 3.4e38");
}

static int set_word(const struct program *p, const struct program_option *o,
                    const char *text, void *field)
{
    int index = program_word(text, o->value);

    if (index < 0)
        return program_refuse_value(p, o->name, text, o->value);
    if (o->kind == OPTION_CHOICE)
        *(int *)field = index;
    else
        *(const char **)field = text;
    return 0;
}

static int set_text(const struct program *p, const struct program_option *o,
                    const char *text, void *field)
{
    if (!*text)
        return program_refuse_value(p, o->name, text, o->value);
    *(const char **)field = text;
    return 0;
}

int program_set(const struct program *p, const struct program_option *o,
                const char *text, void *into)
{
    void *field = (char *)into + o->at;

    switch (o->kind) {
    case OPTION_INT:
    case OPTION_LONG:
    case OPTION_U64:
        return set_whole(p, o, text, field);
    case OPTION_REAL:
        return set_real(p, o, text, field);
    case OPTION_POSITIVE:
    case OPTION_SHARE:
        return set_bounded(p, o, text, field);
    case OPTION_CHOICE:
    case OPTION_WORD:
        return set_word(p, o, text, field);
    case OPTION_TEXT:
        return set_text(p, o, text, field);
    case OPTION_SIZE:
        return size_parse(text, field)
                   ? program_refuse_value(p, o->name, text,
                                          "a size such as 8, 4K or 64M")
                   : 0;
    case OPTION_CALL:
        return o->take(p, text, into);
    case OPTION_SWITCH:
        *(int *)field = 1;
        break;
    case OPTION_NONE:
        break;
    }
    return 0;
}
