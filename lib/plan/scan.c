/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.c - lines, words and numbers of a text. */
#include "lib/plan/scan.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 24 /* characters of a bad word that a message shows */

void coll__scan_init(struct coll__scan *scan, const char *name,
                     const char *text, size_t len)
{
    *scan = (struct coll__scan){.name = name, .rest = text, .end = text + len};
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int coll__scan_line(struct coll__scan *scan)
{
    while (scan->rest < scan->end) {
        size_t left = (size_t)(scan->end - scan->rest);
        const char *end = memchr(scan->rest, '\n', left), *comment;

        scan->at = scan->rest;
        scan->line_end = end ? end : scan->end;
        scan->rest = end ? end + 1 : scan->end;
        scan->line++;
        comment = memchr(scan->at, '#', (size_t)(scan->line_end - scan->at));
        if (comment)
            scan->line_end = comment;
        if (coll__scan_word(scan))
            return 1;
    }
    return 0;
}

int coll__scan_word(struct coll__scan *scan)
{
    while (scan->at < scan->line_end && is_blank(*scan->at))
        scan->at++;
    scan->word = scan->at;
    while (scan->at < scan->line_end && !is_blank(*scan->at))
        scan->at++;
    scan->word_len = (size_t)(scan->at - scan->word);
    return scan->word_len > 0;
}

int coll__scan_is(const struct coll__scan *scan, const char *text)
{
    return scan->word_len == strlen(text) &&
           !memcmp(scan->word, text, scan->word_len);
}

int coll__scan_fault(const struct coll__scan *scan, const char *format, ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    for (char *c = what; *c; c++) /* the file may hold anything */
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    log_error("plan", "%s:%d: %s", scan->name, scan->line ? scan->line : 1,
              what);
    return COLL_ERR_INVALID;
}

int coll__scan_digits(const char **at, const char *end, size_t *value)
{
    const char *c = *at;
    size_t n = 0;

    while (c < end && *c >= '0' && *c <= '9') {
        size_t digit = (size_t)(*c++ - '0');

        if (n > (SIZE_MAX - digit) / 10)
            return -1;
        n = 10 * n + digit;
    }
    if (c == *at)
        return -1;
    *at = c;
    *value = n;
    return 0;
}

static int shown(const struct coll__scan *scan)
{
    return scan->word_len < SHOWN ? (int)scan->word_len : SHOWN;
}

int coll__scan_size(struct coll__scan *scan, const char *what, size_t *value)
{
    const char *at, *end;

    if (!coll__scan_word(scan))
        return coll__scan_fault(scan, "%s: a number is missing", what);
    at = scan->word;
    end = at + scan->word_len;
    if (coll__scan_digits(&at, end, value) || at != end)
        return coll__scan_fault(scan, "%s: '%.*s' is not a whole number, or "
                                "too large a one", what, shown(scan),
                                scan->word);
    return COLL_OK;
}

int coll__scan_int(struct coll__scan *scan, const char *what, int low, int high,
                   int *value)
{
    size_t n;
    int rc = coll__scan_size(scan, what, &n);

    if (rc)
        return rc;
    if (n > (size_t)high || n < (size_t)low)
        return coll__scan_fault(scan, "%s %zu is not within %d to %d", what, n,
                                low, high);
    *value = (int)n;
    return COLL_OK;
}

int coll__scan_name(struct coll__scan *scan, const char *what,
                    const char *const *names, int n, int *value)
{
    char known[256];
    size_t len = 0;

    if (!coll__scan_word(scan))
        return coll__scan_fault(scan, "%s: its name is missing", what);
    for (int i = 0; i < n; i++)
        if (coll__scan_is(scan, names[i])) {
            *value = i;
            return COLL_OK;
        }
    known[0] = '\0';
    for (int i = 0; i < n && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
                                i ? ", " : "", names[i]);
    return coll__scan_fault(scan, "%s: there is no '%.*s'; there are: %s", what,
                            shown(scan), scan->word, known);
}

int coll__scan_ended(struct coll__scan *scan)
{
    return coll__scan_word(scan)
               ? coll__scan_fault(scan, "'%.*s' is not expected here",
                                  shown(scan), scan->word)
               : COLL_OK;
}
