/* SPDX-License-Identifier: BSD-3-Clause */
/* util.c - words in lists, the nearest name for a misspelt one, and what
 * files of other processes need. */
#include "lib/util/util.h"
#include "lib/util/ending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Levenshtein's distance, for words shorter than 64. */
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

static int open_by(int id, int fd, int how)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", id, fd);
    return open(path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int coll__open_file_of(int pid, int fd, int how, const void *name, size_t len)
{
    unsigned char found[64];
    int mine = open_by(pid, fd, how), thread = 0;

    if (mine < 0 && errno != EMFILE && errno != ENFILE)
        thread = coll__other_thread(pid);
    if (thread)
        mine = open_by(thread, fd, how);
    if (mine >= 0 && (pread(mine, found, len, 0) != (ssize_t)len ||
                      memcmp(found, name, len))) {
        close(mine);
        mine = -1;
        errno = ENOENT;
    }
    return mine;
}
