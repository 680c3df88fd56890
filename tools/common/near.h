/* SPDX-License-Identifier: BSD-3-Clause */
/* near.h - how far two names are apart, for "did you mean". */
#ifndef COLL_TOOLS_COMMON_NEAR_H
#define COLL_TOOLS_COMMON_NEAR_H

#include <stddef.h>
#include <string.h>

#define NEAR_MOST 64

/* Return how many letters must be inserted, removed or changed to make b of a
 * (Levenshtein's distance); NEAR_MOST if b is as long as that. */
static inline size_t near_distance(const char *a, const char *b)
{
    size_t row[NEAR_MOST], n = strlen(b);

    if (n >= NEAR_MOST)
        return NEAR_MOST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (; *a; a++) {
        size_t diagonal = row[0];

        row[0]++;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (*a != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

#endif
