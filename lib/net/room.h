/* SPDX-License-Identifier: BSD-3-Clause */
/* room.h - whether a process has the descriptors that joining a group takes.
 *
 * They are counted before they are needed: a rank that lacks one in the midst
 * of it could often not even tell the others.
 */
#ifndef COLL_LIB_NET_ROOM_H
#define COLL_LIB_NET_ROOM_H

/* How many a rank's place in the tree takes: connections to its parent and its
 * children, and what is read or made on the way. */
int coll__room_in_tree(int rank, int size);

/* Return how many of n_needed there are not; logged, when any.  Rank is as the
 * caller knows it. */
int coll__room_lacks(int rank, int n_needed);

#endif
