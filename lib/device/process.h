/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - other processes of this host: whether one is on its way out, and the
 * files that it has open. */
#ifndef COLL_LIB_DEVICE_PROCESS_H
#define COLL_LIB_DEVICE_PROCESS_H

#include <stddef.h>

/* Say whether process pid has ended, or is being killed: then its files and its
 * memory may be gone while its number is still there, until its parent has waited
 * for it.
 *
 * Result:    0 also where /proc does not tell.
 * Threads:   any.  Leaves errno as it was.
 * Cost:      a file read; for failures alone.
 */
int coll__is_ending(int pid);

/* Find a thread of process pid to ask in its stead, where its first thread has ended,
 * whose number the process has: by that number its files and its memory are not found
 * any more.
 *
 * Result:    the thread's number; 0: there is none, or /proc does not tell.
 * Threads:   any.  Leaves errno as it was.
 * Cost:      a folder read; for failures alone.
 */
int coll__other_thread(int pid);

/* Open the file that process pid has open as fd, for `how` (O_RDONLY, O_RDWR).
 *
 * Shapes:    len bytes of name (64 at most) are how the file begins: a number
 *            may be another file's by now, whatever that is.
 * Result:    a descriptor, the caller's to close; or -1 and errno, ENOENT when
 *            it is another file.  Does not block.
 */
int coll__open_file_of(int pid, int fd, int how, const void *name, size_t len);

#endif
