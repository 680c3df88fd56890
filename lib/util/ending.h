/* SPDX-License-Identifier: BSD-3-Clause */
/* ending.h - whether another process is on its way out, or its first thread alone. */
#ifndef COLL_LIB_UTIL_ENDING_H
#define COLL_LIB_UTIL_ENDING_H

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

#endif
