/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h - other copies of the library in this process: a program may be linked with
 * one, and a plugin that it loads with another. */
#ifndef COLL_LIB_COMM_COPIES_H
#define COLL_LIB_COMM_COPIES_H

/* Tell the other copies how many communicators this one has that do not leave. */
void coll__copies_tell(int n_comms);

/* In a child after fork(): there are none any more, and nobody asks for those of others,
 * since a thread of the parent's may have had the loader's lock, which it still has. */
void coll__copies_forked(void);

/* Say whether another copy has such; 0 in a child.
 *
 * Threads:   any; not within a lock of the library: it takes the loader's.
 * Cost:      a look at each object that is loaded.
 */
int coll__copies_have(void);

#endif
