/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - numbers as text, alike in every locale.
 *
 * A program that calls setlocale() may write 0,5 for a half.  What the library
 * reads (variables, files) and says has a point all the same.
 */
#ifndef COLL_LIB_UTIL_TEXT_H
#define COLL_LIB_UTIL_TEXT_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* As strtod(). */
double coll__strtod(const char *text, char **end);

/* As vsnprintf(). */
int coll__vprint(char *text, size_t len, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* As snprintf(). */
int coll__print(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Have this thread write points, until it gives back what this returns. */
locale_t coll__points(void);
void coll__points_end(locale_t before);

#endif
