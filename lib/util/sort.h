/* SPDX-License-Identifier: BSD-3-Clause */
/* sort.h - sort numbers, and find their median. */
#ifndef COLL_LIB_UTIL_SORT_H
#define COLL_LIB_UTIL_SORT_H

#include <stdlib.h>

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sort in ascending order. */
static inline void sort_doubles(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_doubles);
}

/* Return the lower median of n >= 1 values; sorts them. */
static inline double lower_median(double *values, size_t n)
{
    sort_doubles(values, n);
    return values[(n - 1) / 2];
}

#endif
