/* SPDX-License-Identifier: BSD-3-Clause */
/* stamp.c - see stamp.h. */
#include "lib/util/stamp.h"

#include <string.h>
#include <sys/stat.h>

struct coll__stamp coll__stamp_of(const char *path)
{
    struct coll__stamp stamp = {0};
    struct stat st;

    if (stat(path, &st))
        return stamp;
    stamp.dev = (uint64_t)st.st_dev;
    stamp.ino = (uint64_t)st.st_ino;
    stamp.size = (uint64_t)st.st_size;
    stamp.modified[0] = st.st_mtim.tv_sec;
    stamp.modified[1] = st.st_mtim.tv_nsec;
    stamp.changed[0] = st.st_ctim.tv_sec;
    stamp.changed[1] = st.st_ctim.tv_nsec;
    return stamp;
}

int coll__stamp_same(const struct coll__stamp *a, const struct coll__stamp *b)
{
    return a->ino && !memcmp(a, b, sizeof(*a)); /* it has no padding */
}
