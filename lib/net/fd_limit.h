/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_limit.h - whether a process has the descriptors that joining a group takes.
 *
 * They are counted before they are needed: a rank that lacks one in the midst
 * of it could often not even tell the others.
 */
#ifndef COLL_LIB_NET_FD_LIMIT_H
#define COLL_LIB_NET_FD_LIMIT_H

/* How many a rank's place in the tree takes: connections to its parent and its
 * children, and what is read or made on the way. */
int coll__fds_in_tree(int rank, int size);

/* Return how many of n_needed there are not; logged, when any.  Rank is as the
 * caller knows it. */
int coll__fds_lack(int rank, int n_needed);

#endif
