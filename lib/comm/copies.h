/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h - other copies of the library in this process: a program may be linked with
 * one, and a plugin that it loads with another. */
#ifndef COLL_LIB_COMM_COPIES_H
#define COLL_LIB_COMM_COPIES_H

/* Tell the other copies how many communicators of this copy are not being destroyed. */
void coll__copies_tell(int n_comms);

/* In a child after fork(): this copy has no communicators.  From now on
 * coll__copies_have() does not ask the loader: a thread of the parent may have held the
 * loader's lock during fork(), and then the lock is never released in the child. */
void coll__copies_forked(void);

/* Return 1 if another copy has communicators that are not being destroyed; 0 in a
 * child.
 *
 * Threads:   any that holds no lock of the library, since the function takes the
 *            loader's.
 * Cost:      a look at each object that is loaded.
 */
int coll__copies_have(void);

#endif
