/* SPDX-License-Identifier: BSD-3-Clause */
/* this_host.h - which host this process is on. */
#ifndef COLL_LIB_NET_THIS_HOST_H
#define COLL_LIB_NET_THIS_HOST_H

#define COLL__HOST_BYTES 32

/* Make the name of this host.  Two processes get the same name if they have the same
 * kernel and the same network, and also on hosts that are clones of one snapshot:
 * presence.h tells these apart. */
void coll__host_id(unsigned char id[COLL__HOST_BYTES]);

/* Return the inode of a namespace of this process, or 0. */
unsigned long long coll__host_inode(const char *path);

#endif
