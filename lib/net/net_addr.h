/* SPDX-License-Identifier: BSD-3-Clause */
/* net_addr.h - convert struct coll__addr to and from the kernel's form; for net*.c. */
#ifndef COLL_LIB_NET_NET_ADDR_H
#define COLL_LIB_NET_NET_ADDR_H

#include "lib/net/net.h"

#include <sys/socket.h>

/* Convert to *out; returns its length. */
socklen_t coll__addr_to_sock(const struct coll__addr *addr,
                             struct sockaddr_storage *out);

/* Return 0, or -1 for a family that is neither IPv4 nor IPv6. */
int coll__addr_from_sock(const struct sockaddr *in, struct coll__addr *addr);

/* Is it link-local (fe80::/10)?  Such an address is used together with an interface of
 * this host.  It is sent to other hosts without the interface. */
int coll__addr_is_link_local(const struct coll__addr *addr);
uint32_t coll__addr_scope(const struct coll__addr *addr);
void coll__addr_set_scope(struct coll__addr *addr, uint32_t scope);

/* Give a link-local address without an interface the likeliest one: COLL_NET_INTERFACE,
 * or the interface that has this address, or the first that has a link-local one. */
void coll__net_find_scope(struct coll__addr *addr);

/* Is this host's loopback interface down?  fd: any socket. */
int coll__net_is_loopback_down(int fd);

#endif
