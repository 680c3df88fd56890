/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes on the command lines of programs. */
#ifndef COLL_TOOLS_COMMON_SIZE_H
#define COLL_TOOLS_COMMON_SIZE_H

#include <stdlib.h>
#include <string.h>

/* Read a size of 16 TiB at most: "8", "4K", "1.5MiB", in powers of 1024.
 *
 * Result:    0 and *bytes, or -1 when the text is no size.
 */
static inline int size_parse(const char *text, size_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;

    if (end == text || text[0] == '-')
        return -1;
    if (unit && *unit) {
        for (int i = 0; i <= unit - units; i++)
            value *= 1024;
        end++;
        end += *end == 'i';
    }
    end += *end == 'B';
    if (*end || !(value >= 0) || value > 0x1p44)
        return -1;
    *bytes = (size_t)value;
    return 0;
}

#endif
