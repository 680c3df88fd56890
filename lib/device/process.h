/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - other processes of this host: whether one is ending, and its open files. */
#ifndef COLL_LIB_DEVICE_PROCESS_H
#define COLL_LIB_DEVICE_PROCESS_H

#include <stddef.h>

/* Say whether process pid has ended or is being killed.  Its files and its memory may
 * then be gone, although the pid exists until the parent has waited for the process.
 *
 * Result:    1 or 0; 0 also if /proc does not tell.
 * Threads:   any.  Leaves errno as it was.
 * Cost:      reads a file; only called after failures.
 */
int coll__is_ending(int pid);

/* Find a thread of process pid whose number to use if the first thread has ended.  The
 * pid is the first thread's number, and /proc no longer shows files and memory for it.
 *
 * Result:    the thread's number; 0: there is none, or /proc does not tell.
 * Threads:   any.  Leaves errno as it was.
 * Cost:      reads a folder; only called after failures.
 */
int coll__other_thread(int pid);

/* Open the file that process pid has open as fd, for `how` (O_RDONLY, O_RDWR).
 *
 * Shapes:    the file begins with name[len], 64 bytes at most.  This is compared, since
 *            fd may be another file by now.
 * Result:    a descriptor, which the caller closes; or -1 and errno, ENOENT if it
 *            is another file.  Does not block.
 */
int coll__open_file_of(int pid, int fd, int how, const void *name, size_t len);

#endif
