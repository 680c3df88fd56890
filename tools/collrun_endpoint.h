/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_endpoint.h - sockets between hosts. */
#ifndef COLL_TOOLS_COLLRUN_ENDPOINT_H
#define COLL_TOOLS_COLLRUN_ENDPOINT_H

#include <stddef.h>

/* Is it a name of the loopback interface? */
int endpoint_is_loopback(const char *host);

/* Is an address of this name on this host? */
int endpoint_is_here(const char *host, int port);

/* Listen at this port of every interface, or of the loopback interface if `host` is a
 * name of that; for port 0 the kernel chooses a port.  -1: errno says why not. */
int endpoint_listen(const char *host, int port);

/* Connect; -1 if nobody answers within `seconds`. */
int endpoint_call(const char *host, int port, double seconds);

/* Have a host that is cut off, or has lost its power, noticed as soon as ranks notice
 * it. */
void endpoint_prepare(int fd);

/* Write the address of the other end. */
void endpoint_say_where(int fd, char *where, size_t len);

/* Read the port at which a socket listens. */
int endpoint_port(int fd);

#endif
