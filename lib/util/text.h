/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - numbers as text, the same in every locale.
 *
 * In a program that calls setlocale(), printf() may write 0,5 for a half.  The library
 * always reads and writes a decimal point.
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

/* Have this thread use decimal points, until coll__points_end() gets the returned
 * locale. */
locale_t coll__points(void);
void coll__points_end(locale_t before);

#endif
