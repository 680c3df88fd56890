/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_limit.h - has the process enough file descriptors to join a group?
 *
 * They are counted beforehand: a rank that runs out of descriptors while it joins often
 * cannot even tell the others.
 */
#ifndef COLL_LIB_NET_FD_LIMIT_H
#define COLL_LIB_NET_FD_LIMIT_H

/* Count the descriptors that a rank's place in the tree needs: the connections to its
 * parent and children, and the files that it opens meanwhile. */
int coll__fds_in_tree(int rank, int size);

/* Return how many of n_needed descriptors are missing; logged, if any.  `rank` is only
 * for the message. */
int coll__fds_lack(int rank, int n_needed);

#endif
