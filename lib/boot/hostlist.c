/* SPDX-License-Identifier: BSD-3-Clause */
/* hostlist.c - the first name of a list of hosts. */
#include "lib/boot/hostlist.h"

#include <ctype.h>
#include <string.h>

static int is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* Check the "1-3,07" between brackets; returns the length of its first number, or 0. */
static size_t first_number(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && isdigit((unsigned char)text[n]))
        n++;
    for (size_t i = n; i < len; i++)
        if (!isdigit((unsigned char)text[i]) && text[i] != '-' &&
            text[i] != ',')
            return 0;
    return n < len && text[n] != '-' && text[n] != ',' ? 0 : n;
}

static int append(char *name, size_t len, size_t *at, const char *text,
                  size_t n)
{
    if (n >= len - *at)
        return -1;
    memcpy(name + *at, text, n);
    *at += n;
    return 0;
}

/* Write one piece of the name: literal text, or the first number in brackets. */
static int take_piece(const char **list, char *name, size_t len, size_t *at)
{
    const char *text = *list, *end;
    size_t n = 0;

    if (*text != '[') {
        while (is_name_byte(text[n]))
            n++;
        *list = text + n;
        return n ? append(name, len, at, text, n) : -1;
    }
    end = strchr(text, ']');
    n = end ? first_number(text + 1, (size_t)(end - text) - 1) : 0;
    if (!n)
        return -1;
    *list = end + 1;
    return append(name, len, at, text + 1, n);
}

int coll__hostlist_first(const char *list, char *name, size_t len)
{
    size_t at = 0;

    name[0] = '\0';
    do {
        if (take_piece(&list, name, len, &at)) {
            name[0] = '\0';
            return -1;
        }
    } while (*list && *list != ',');
    name[at] = '\0';
    return 0;
}
