/* SPDX-License-Identifier: BSD-3-Clause */
/* ancestor.h - what /proc says of processes, first of all of this one's ancestors.  A
 * process of another user, which may not be read, counts as one without information. */
#ifndef COLL_LIB_BOOT_ANCESTOR_H
#define COLL_LIB_BOOT_ANCESTOR_H

#define COLL__MOST_ANCESTORS 32

/* Return a process's parent; 0 if it is not visible. */
int coll__parent_of(int pid);

/* Did that process start with the variable in its environment? */
int coll__began_with(int pid, const char *variable);

/* Is that process this one, or one of its ancestors? */
int coll__is_ancestor(int pid);

/* Did any process start with this variable of this value, "NAME=VALUE"? */
int coll__any_began_with(const char *item);

#endif
