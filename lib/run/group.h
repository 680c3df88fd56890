/* SPDX-License-Identifier: BSD-3-Clause */
/* group.h - operations that a thread starts as one. */
#ifndef COLL_LIB_RUN_GROUP_H
#define COLL_LIB_RUN_GROUP_H

struct coll_args;
struct coll_comm;

/* How many groups are open, one within the other, in this thread.  Every call reads it.
 * (With the TLS model "initial-exec" the read would take 1.5 ns less.  But then the
 * library's thread-local data would need static TLS space, of which little is left for
 * libraries that are loaded by dlopen().) */
extern _Thread_local int coll__group_depth
    __attribute__((visibility("hidden")));

/* Is this thread within coll_group_start() and coll_group_end()? */
static inline int coll__group_is_open(void) { return coll__group_depth > 0; }

/* The outermost group of this thread ends: carry out the noted operations.  A status,
 * logged. */
int coll__group_end(void);

/* Note an operation for the end of the group; args is copied, arrays too. */
int coll__group_note(struct coll_comm *comm, const struct coll_args *args);

/* The communicator is destroyed: drop the operations that the open group has noted for
 * it.  COLL_ERR_INVALID if there were any. */
int coll__group_forget(const struct coll_comm *comm);

#endif
