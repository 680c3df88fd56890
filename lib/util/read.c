/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - see read.h. */
#include "lib/util/read.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int coll__read_line(const char *dir, const char *name, char *line, size_t len)
{
    char path[PATH_MAX];
    FILE *file;
    int is_read;

    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return -1;
    file = fopen(path, "re");
    if (!file)
        return -1;
    is_read = fgets(line, (int)len, file) != NULL;
    fclose(file);
    if (!is_read)
        return -1;
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

long coll__read_number(const char *dir, const char *name, long otherwise)
{
    char line[64], *end;
    long value;

    if (coll__read_line(dir, name, line, sizeof(line)))
        return otherwise;
    errno = 0;
    value = strtol(line, &end, 0);
    return end == line || errno ? otherwise : value;
}
