/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_words.c - lines, words and values of a topology; every error message names file,
 * line and word, and says what to write instead. */
#include "tools/sim/fabric_words.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 1024

int coll__parse_fail(const struct parser *parser, const char *format, ...)
{
    char why[512];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    for (char *c = why; *c; c++) /* the printable bytes of the file's text */
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
            *c = '?';
    log_error("topo", "%s:%d: %s", parser->path, parser->line, why);
    return COLL_ERR_INVALID;
}

/* ---- lines --------------------------------------------------------------- */

static int split(struct parser *parser, char *line)
{
    char *save = NULL;

    parser->n_words = parser->at = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r\f\v", &save); word;
         word = strtok_r(NULL, " \t\r\f\v", &save)) {
        if (parser->n_words == MAX_WORDS)
            return coll__parse_fail(parser, "more than %d words; break the "
                                            "line up",
                                    MAX_WORDS);
        parser->words[parser->n_words++] = word;
    }
    return COLL_OK;
}

int coll__parse_line(struct parser *parser)
{
    do {
        char *line = parser->next, *end;
        int rc;

        if (!*line)
            return 0;
        end = line + strcspn(line, "\n");
        parser->next = end + (*end == '\n');
        *end = '\0';
        parser->line++;
        rc = split(parser, line);
        if (rc)
            return rc;
    } while (!parser->n_words);
    return 1;
}

/* ---- values -------------------------------------------------------------- */

struct unit {
    const char *name;
    double factor;
};

static const struct unit rates[] = {
    {"B/s", 1},        {"kB/s", 1e3},    {"KB/s", 1e3},      {"MB/s", 1e6},
    {"GB/s", 1e9},     {"TB/s", 1e12},   {"kb/s", 1e3 / 8},  {"Mb/s", 1e6 / 8},
    {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8}, {NULL, 0}};
static const struct unit times[] = {
    {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};

/* Read a number and its unit; -1 if it is no number or above 1e15. */
static int measure(const char *word, const struct unit *units, double *value)
{
    size_t len = strspn(word, "0123456789.");
    char *end;

    if (!len || len > 30)
        return -1;
    *value = coll__strtod(word, &end);
    if (end != word + len)
        return -1;
    for (; units->name; units++)
        if (!strcmp(end, units->name)) {
            *value *= units->factor;
            return *value <= 1e15 ? 0 : -1;
        }
    return -1;
}

/* Read a whole number from 1 to max at the start of text; 0 if there is none. */
static int whole(const char *text, int max, const char **end)
{
    int value = 0;

    *end = text;
    for (; **end >= '0' && **end <= '9'; ++*end) {
        value = value * 10 + (**end - '0');
        if (value > max)
            return 0;
    }
    return value;
}

static int read_rate(struct parser *parser, const struct field *field,
                     const char *word)
{
    double rate;

    if (measure(word, rates, &rate) || rate < 1)
        return coll__parse_fail(parser,
                                "%s '%.40s' is not a number with a unit such "
                                "as 25GB/s or 200Gb/s",
                                field->key, word);
    *(double *)field->value = 1 / rate;
    return COLL_OK;
}

static int read_time(struct parser *parser, const struct field *field,
                     const char *word)
{
    double time;

    if (measure(word, times, &time) || time > 10)
        return coll__parse_fail(parser,
                                "%s '%.40s' is not a time such as 1.5us or "
                                "300ns, 10s at most",
                                field->key, word);
    *(double *)field->value = time;
    return COLL_OK;
}

static int read_counts(struct parser *parser, const struct field *field,
                       const char *word)
{
    int *counts = field->value, n = 0;
    const char *end = word - 1;

    do {
        int count = whole(end + 1, FABRIC_MAX_SEATS, &end);

        if (!count || n == FABRIC_MAX_TREE || (*end && *end != ','))
            return coll__parse_fail(parser,
                                    "%s '%.40s' is not 1 to %d numbers such as "
                                    "32,16,8",
                                    field->key, word, FABRIC_MAX_TREE);
        counts[n++] = count;
    } while (*end);
    return COLL_OK;
}

/* Read one of two words; the value of the first word is 0. */
static int read_choice(struct parser *parser, const struct field *field,
                       const char *word, const char *first,
                       const char *second)
{
    int is_second = !strcmp(word, second);

    if (!is_second && strcmp(word, first))
        return coll__parse_fail(parser, "%s '%.40s' is neither %s nor %s",
                                field->key, word, first, second);
    *(int *)field->value = is_second;
    return COLL_OK;
}

static int read_field(struct parser *parser, const struct field *field,
                      const char *word)
{
    const char *end;
    int count;

    switch (field->kind) {
    case FIELD_RATE:
        return read_rate(parser, field, word);
    case FIELD_TIME:
        return read_time(parser, field, word);
    case FIELD_COUNTS:
        return read_counts(parser, field, word);
    case FIELD_YES:
        return read_choice(parser, field, word, "no", "yes");
    case FIELD_STATE:
        return read_choice(parser, field, word, "active", "down");
    case FIELD_WORD:
        *(const char **)field->value = word;
        return COLL_OK;
    case FIELD_COUNT:
        break;
    }
    count = whole(word, FABRIC_MAX_SEATS, &end);
    if (!count || *end)
        return coll__parse_fail(parser, "%s '%.40s' is not a whole number from "
                                        "1 to %d",
                                field->key, word, FABRIC_MAX_SEATS);
    *(int *)field->value = count;
    return COLL_OK;
}

static const struct field *find_field(const struct field *fields,
                                      const char *key)
{
    while (fields->key && strcmp(fields->key, key))
        fields++;
    return fields->key ? fields : NULL;
}

static int unknown_key(struct parser *parser, const struct field *fields,
                       const char *key)
{
    const char *names[MAX_WORDS] = {NULL};

    for (int i = 0; fields[i].key && i < MAX_WORDS - 1; i++)
        names[i] = fields[i].key;
    if (!names[0])
        return coll__parse_fail(parser, "'%.40s' does not belong here; remove "
                                        "it",
                                key);
    return coll__parse_fail(parser, "no field is called '%.40s' here; did you "
                                    "mean '%s'?",
                            key, coll__nearest(key, names));
}

int coll__parse_fields(struct parser *parser, const struct field *fields)
{
    while (parser->at < parser->n_words) {
        const char *key = parser->words[parser->at++];
        const struct field *field = find_field(fields, key);
        int rc;

        if (!field)
            return unknown_key(parser, fields, key);
        if (parser->at == parser->n_words)
            return coll__parse_fail(parser, "'%s' has no value; write one "
                                            "behind it",
                                    key);
        rc = read_field(parser, field, parser->words[parser->at++]);
        if (rc)
            return rc;
    }
    return COLL_OK;
}

int coll__parse_count(struct parser *parser, const char *what, int max,
                      int *count)
{
    const char *word =
        parser->at < parser->n_words ? parser->words[parser->at] : "";
    const char *end;

    *count = whole(word, max, &end);
    if (!*count || *end)
        return coll__parse_fail(parser, "%s '%.40s' is not a whole number from "
                                        "1 to %d",
                                what, word, max);
    parser->at++;
    return COLL_OK;
}

int coll__parse_name(struct parser *parser, const char *what,
                     char name[FABRIC_NAME])
{
    const char *word =
        parser->at < parser->n_words ? parser->words[parser->at] : "";
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
                              "VWXYZ0123456789_-.");

    if (!len || word[len] || len > FABRIC_NAME - 8)
        return coll__parse_fail(parser,
                                "%s '%.40s' is no name: write 1 to %d letters, "
                                "digits, '_', '-' or '.'",
                                what, word, FABRIC_NAME - 8);
    memcpy(name, word, len + 1);
    parser->at++;
    return COLL_OK;
}

/* ---- parts --------------------------------------------------------------- */

/* Read NAME[2-5]: the place of the brackets and the numbers; -1 if it has none. */
static int read_range(const char *item, int *len, int *first, int *last)
{
    const char *open = strchr(item, '['), *end;

    if (!open)
        return -1;
    *len = (int)(open - item);
    *first = open[1] == '0' ? (end = open + 2, 0)
                            : whole(open + 1, FABRIC_MAX_PARTS, &end);
    if (*end != '-')
        return -1;
    *last = whole(end + 1, FABRIC_MAX_PARTS, &end);
    return strcmp(end, "]") ? -1 : 0;
}

static int matches(const char *name, const char *item)
{
    size_t len = strlen(item);
    int at, first, last, number;
    const char *end;

    if (len && item[len - 1] == '*')
        return !strncmp(name, item, len - 1);
    if (read_range(item, &at, &first, &last))
        return !strcmp(name, item);
    if (strncmp(name, item, (size_t)at) || !name[at])
        return 0;
    number = whole(name + at, FABRIC_MAX_PARTS, &end);
    return !*end && number >= first && number <= last;
}

int coll__parse_parts(struct parser *parser, const char *word, int *parts,
                      int *n)
{
    const struct graph *graph = parser->block;
    char item[FABRIC_NAME + 16], is_named[FABRIC_MAX_PARTS] = {0};

    *n = 0;
    if (strlen(word) > MAX_LIST)
        return coll__parse_fail(parser, "a list of parts longer than %d "
                                        "letters; break the line up",
                                MAX_LIST);
    for (const char *from = word; from; from = strchr(from, ',')) {
        int is_found = 0;

        from += *from == ',';
        snprintf(item, sizeof(item), "%.*s", (int)strcspn(from, ","), from);
        for (int i = 0; i < graph->n_parts; i++)
            if (matches(graph->parts[i].name, item)) {
                is_found = 1;
                if (!is_named[i])
                    parts[(*n)++] = i;
                is_named[i] = 1;
            }
        if (!is_found)
            return coll__parse_fail(parser, "no part is called '%s'; declare "
                                            "it on a line above",
                                    item);
    }
    return COLL_OK;
}
