/* SPDX-License-Identifier: BSD-3-Clause */
/* ancestor.h - what /proc says of the processes that this one descends from.  A process
 * that may not be looked at, because it is another user's, says nothing. */
#ifndef COLL_LIB_BOOT_ANCESTOR_H
#define COLL_LIB_BOOT_ANCESTOR_H

#define COLL__MOST_ANCESTORS 32

/* A process's parent; 0 where it is out of sight. */
int coll__parent_of(int pid);

/* Did that process begin with the variable? */
int coll__began_with(int pid, const char *variable);

#endif
