/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h - the file-descriptor limit, and whether a file has changed. */
#ifndef COLL_LIB_UTIL_FILES_H
#define COLL_LIB_UTIL_FILES_H

#include <stdint.h>

/* Count how many more descriptors this process may open.
 *
 * Result:    `enough` at most.  Other threads may take descriptors at any time.
 * Threads:   any.
 * Cost:      one system call for each descriptor that it looks at; opens none.
 */
int coll__files_left(int enough);

/* Open /dev/null as stdin, stdout or stderr if they are closed.  Else a file or socket of
 * the library could get such a number, and with it the output of the program.
 *
 * Threads:   any.
 */
void coll__files_fill_standard(void);

/* Say whether the error means that no descriptor is left. */
int coll__files_lack(int err);

/* As strerror(), with the remedy if no descriptor is left. */
const char *coll__files_error(int err);

/* The stamp of a file: it changes with the contents; all 0 if there is no such file. */
struct coll__stamp {
    uint64_t dev, ino, size;
    int64_t modified[2], changed[2]; /* s, ns */
};

/* Take the stamp of a file.  Take it before reading the file, so that a change during
 * the reading shows the next time. */
struct coll__stamp coll__stamp_of(const char *path);

/* Say whether two stamps are of the same file with the same contents. */
int coll__stamp_same(const struct coll__stamp *a, const struct coll__stamp *b);

#endif
