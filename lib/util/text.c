/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - numbers as text, the same in every locale. */
#include "lib/util/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* never freed; 0 if there was no memory */

static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", 0); }

locale_t coll__points(void)
{
    pthread_once(&once, make_plain);
    return plain ? uselocale(plain) : 0;
}

void coll__points_end(locale_t before)
{
    if (before)
        uselocale(before);
}

double coll__strtod(const char *text, char **end)
{
    locale_t before = coll__points();
    double value = strtod(text, end);

    coll__points_end(before);
    return value;
}

int coll__vprint(char *text, size_t len, const char *format, va_list args)
{
    locale_t before = coll__points();
    int n = vsnprintf(text, len, format, args);

    coll__points_end(before);
    return n;
}

int coll__print(char *text, size_t len, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = coll__vprint(text, len, format, args);
    va_end(args);
    return n;
}
