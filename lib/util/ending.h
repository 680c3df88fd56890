/* SPDX-License-Identifier: BSD-3-Clause */
/* ending.h - whether another process is on its way out. */
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

#endif
