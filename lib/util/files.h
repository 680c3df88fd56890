/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h - the limit of file descriptors, and whether a file has changed. */
#ifndef COLL_LIB_UTIL_FILES_H
#define COLL_LIB_UTIL_FILES_H

#include <stdint.h>

/* Count how many more descriptors this process may open.
 *
 * Result:    at most `enough`, so that many are counted in one call a
 *            descriptor that is open; other threads may take them at any time.
 * Threads:   any; nothing is opened for it.
 */
int coll__files_left(int enough);

/* Put /dev/null where stdin, stdout or stderr is closed, so that nothing which the
 * library opens after that gets their number, and with it what anybody prints.
 *
 * Threads:   any.
 */
void coll__files_fill_standard(void);

/* Say whether the error is that no other descriptor can be had. */
int coll__files_lack(int err);

/* As strerror(), with the remedy for such a want. */
const char *coll__files_error(int err);

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
