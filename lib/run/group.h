/* SPDX-License-Identifier: BSD-3-Clause */
/* group.h - operations that a thread starts as one. */
#ifndef COLL_LIB_RUN_GROUP_H
#define COLL_LIB_RUN_GROUP_H

struct coll_args;
struct coll_comm;

/* How deep in groups this thread is.  Every call asks.  (As "initial-exec" it would
 * take 1.5 ns less, and all that threads have of the library a place among what they
 * have from the start: little is left of that in a program that loads it later.) */
extern _Thread_local int coll__group_depth
    __attribute__((visibility("hidden")));

/* Is this thread within coll_group_start() and coll_group_end()? */
static inline int coll__group_is_open(void) { return coll__group_depth > 0; }

/* The outermost group of this thread ends: carry out what was noted.  A status,
 * logged. */
int coll__group_end(void);

/* Note an operation for the end of the group; args is copied, arrays too. */
int coll__group_note(struct coll_comm *comm, const struct coll_args *args);

/* The communicator ends: drop what the group has noted for it, if anything;
 * that is COLL_ERR_INVALID. */
int coll__group_forget(const struct coll_comm *comm);

#endif
