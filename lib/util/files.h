/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h - file descriptors, of which a process may have so many. */
#ifndef COLL_LIB_UTIL_FILES_H
#define COLL_LIB_UTIL_FILES_H

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

#endif
