/* SPDX-License-Identifier: BSD-3-Clause */
/* stamp.h - is a file still the one that was read? */
#ifndef COLL_LIB_UTIL_STAMP_H
#define COLL_LIB_UTIL_STAMP_H

#include <stdint.h>

/* What changes with a file's contents; all 0: there is no such file. */
struct coll__stamp {
    uint64_t dev, ino, size;
    int64_t modified[2], changed[2]; /* s, ns */
};

/* Look at the file of that name now: before it is read, so that a change
 * meanwhile shows the next time. */
struct coll__stamp coll__stamp_of(const char *path);

/* Say whether both are of one file with the same contents. */
int coll__stamp_same(const struct coll__stamp *a, const struct coll__stamp *b);

#endif
