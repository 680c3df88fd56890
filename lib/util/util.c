/* SPDX-License-Identifier: BSD-3-Clause */
/* util.c - words in lists, and the nearest name for a misspelt one. */
#include "lib/util/util.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int coll__word_in(const char *word, const char *list, char sep)
{
    size_t len = strlen(word);

    while (*list) {
        const char *end = strchr(list, sep);
        size_t n = end ? (size_t)(end - list) : strlen(list);

        if (n == len && !memcmp(word, list, n))
            return 1;
        list += n + (end != NULL);
    }
    return 0;
}

/* Return the edit distance (Levenshtein) of two words shorter than 64. */
static size_t distance(const char *a, const char *b)
{
    size_t row[64], lb = strlen(b);

    if (lb >= ARRAY_LEN(row))
        return lb;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);

            row[j] = min_size(change, min_size(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[lb];
}

const char *coll__nearest(const char *word, const char *const *names)
{
    const char *best = names[0];

    for (int i = 1; names[i]; i++)
        if (distance(word, names[i]) < distance(word, best))
            best = names[i];
    return best;
}

int coll__set_file_len(int fd, size_t len)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_FSIZE, &limit) && len > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, (off_t)len);
}
