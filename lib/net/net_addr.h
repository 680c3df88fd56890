/* SPDX-License-Identifier: BSD-3-Clause */
/* net_addr.h - struct coll__addr to and from the kernel's form; for net*.c. */
#ifndef COLL_LIB_NET_NET_ADDR_H
#define COLL_LIB_NET_NET_ADDR_H

#include "lib/net/net.h"

#include <sys/socket.h>

/* Fill in *out; return its length. */
socklen_t coll__addr_to_sock(const struct coll__addr *addr,
                             struct sockaddr_storage *out);

/* Return 0, or -1 for a family that is neither IPv4 nor IPv6. */
int coll__addr_from_sock(const struct sockaddr *in, struct coll__addr *addr);

/* Say whether this host's loopback interface is down; fd is any socket. */
int coll__net_is_loopback_down(int fd);

#endif
