/* SPDX-License-Identifier: BSD-3-Clause */
/* net.h - TCP sockets with deadlines, IPv4 and IPv6.
 *
 * Every socket is non-blocking, close-on-exec and without Nagle's delay.  A
 * deadline is a time of coll__now().  Functions that say so log their errors;
 * the others return a status that the caller explains.
 */
#ifndef COLL_LIB_NET_NET_H
#define COLL_LIB_NET_NET_H

#include "include/coll/coll.h"
#include "lib/util/util.h"

#define COLL__MAX_ADDRS 4
#define COLL__ADDR_TEXT 64

/* After this time, in s, a silent host counts as lost.  All other times that watch over
 * hosts are derived from it.
 *
 * The last packet of a host came at most two probes before the host went.  The loss is
 * noticed COLL__SILENCE after that packet, by a look that is up to COLL__SILENCE_LOOK
 * late: 7 to 9.5 s after the host went.  A host that is back after 5 s is always heard
 * in time: data under way to it is resent with every probe.  Kernels before Linux 6.15
 * resend it after 0.2 s and the round trip, then after twice that, and so on: on a link
 * of less than 20 ms after some 6.5 s. */
#define COLL__SILENCE 9
#define COLL__SILENCE_PROBE 1  /* s, between two keep-alive probes */
#define COLL__SILENCE_LOOK 0.5 /* s, between two looks at what has been acknowledged */

/* What an error says of a rank on a silent host, after the rank's name. */
#define COLL__SILENT_TEXT                                                      \
    "has fallen silent: its host, or the network to it, has been down "        \
    "for " STRING_OF(COLL__SILENCE) " s"

/* An address and a port, as it travels: no padding, fixed byte order. */
struct coll__addr {
    uint8_t ip[16];  /* the first 4 bytes for IPv4 */
    uint8_t port[2]; /* most significant byte first */
    uint8_t family;  /* 4 or 6; 0 for none */
    uint8_t unused;
};

/* Which processes must be able to connect. */
enum coll__reach { REACH_HOST, REACH_NET };

/* Does COLL_NET_FAMILY (4 or 6) allow the address?  An invalid value allows both: it is
 * reported later, when all ranks can be told. */
int coll__net_wants(int family);

uint16_t coll__net_port(const struct coll__addr *addr);
void coll__net_set_port(struct coll__addr *addr, uint16_t port);
int coll__net_is_loopback(const struct coll__addr *addr);

/* Write "127.0.0.1:80", "[::1]:80" or "[fe80::1%eth0]:80". */
void coll__net_text(const struct coll__addr *addr, char text[COLL__ADDR_TEXT]);

/* Find the address at the other end of fd: 0; or -1, and *addr is empty. */
int coll__net_peer(int fd, struct coll__addr *addr);

/* Write the address at the other end of fd. */
void coll__net_peer_text(int fd, char text[COLL__ADDR_TEXT]);

/* Listen on a port of COLL_NET_PORTS (any free one if it is not set).  The interface is
 * COLL_NET_INTERFACE, else all of them (REACH_NET) or the loopback one (REACH_HOST).
 *
 * Result:    *fd, the caller's to close.
 * Errors:    COLL_ERR_INVALID, COLL_ERR_SYSTEM, logged.
 */
int coll__net_listen(enum coll__reach reach, int *fd);

/* Listen on exactly this port; with a loopback address, only this host can connect.
 *
 * Errors:    COLL_ERR_SYSTEM; logged unless is_quiet.
 */
int coll__net_listen_at(const struct coll__addr *at, int is_quiet, int *fd);

/* Have the kernel hold back connections to this listening socket until they have sent
 * something, so that silent ones cost no descriptor. */
void coll__net_await_words(int fd);

/* List the addresses by which others reach the listening socket fd.
 *
 * Result:    their number, at most COLL__MAX_ADDRS.
 */
int coll__net_own_addrs(int fd, struct coll__addr addrs[COLL__MAX_ADDRS]);

/* Are these two interfaces of this host of the same kind, and of the same known speed? */
int coll__net_are_alike(const char *a, const char *b);

/* Among n addresses of this host, count those that are like the first one: each on an
 * interface of its own, all interfaces of the same kind and the same known speed.
 *
 * Result:    at least 1.
 */
int coll__net_count_alike(const struct coll__addr *addrs, int n);

/* Is this an address of this host? */
int coll__net_is_own(const struct coll__addr *addr);

#define COLL__INTERFACE_NAME 16 /* bytes, with the NUL: IF_NAMESIZE */

/* Write the name of the interface by which packets to that address leave this host; ""
 * if there is no route.  Nothing is sent. */
void coll__net_interface_to(const struct coll__addr *to,
                            char name[COLL__INTERFACE_NAME]);

/* Return which processes can connect to the listening socket fd. */
enum coll__reach coll__net_reach(int fd);

/* Look a host name or address up: "node1", "fd00::1", "[fd00::1]" or "fe80::1%eth0".
 *
 * Result:    the number of addresses; COLL_ERR_BOOTSTRAP, logged.
 */
int coll__net_resolve(const char *name, uint16_t port,
                      struct coll__addr addrs[COLL__MAX_ADDRS]);

/* Split "HOST:PORT" or "[ADDRESS]:PORT".
 *
 * Result:    0, or -1 if the text has another form.
 */
int coll__net_split(const char *text, char *host, size_t len, uint16_t *port);

/* Begin to connect.
 *
 * Result:    the socket, the caller's, or -errno, not logged; -ENETDOWN if
 *            the address is this host's own and its loopback interface is
 *            down.  Once the socket is ready for writing,
 *            coll__net_end_connect() returns the result.
 */
int coll__net_begin_connect(const struct coll__addr *to);

/* Return 0 if the connection is up, else -errno. */
int coll__net_end_connect(int fd);

/* Explain an errno of connecting in words, with the remedy if it is known. */
const char *coll__net_error(int err);

/* Connect.
 *
 * Result:    the socket, or -errno (-ETIMEDOUT at the deadline), not logged.
 */
int coll__net_connect(const struct coll__addr *addr, double deadline);

/* Read or write exactly len bytes.
 *
 * Errors:    COLL_ERR_PEER (the other end went away), COLL_ERR_TIMEOUT; not
 *            logged.
 */
int coll__net_read(int fd, void *bytes, size_t len, double deadline);
int coll__net_write(int fd, const void *bytes, size_t len, double deadline);

/* Give a socket that was made elsewhere the options of all others here.  If the other
 * end's kernel does not answer for COLL__SILENCE seconds, the host is taken for lost and
 * the connection ends with ETIMEDOUT or EHOSTUNREACH. */
int coll__net_adopt(int fd);

/* A process that is stopped or busy does not read.  Once its buffers are full, the kernel
 * would take its host for lost.  This call prevents that: from then on the kernel watches
 * idle connections only, and coll__net_is_unheard() watches the others. */
void coll__net_allow_stalls(int fd);

/* Limit the data in flight on a connection to what its link holds, for good: returns 1.
 * Or 0, and nothing changes: the link is long, its round-trip time is not known yet, or
 * the kernel grants less than that (net.core.wmem_max). */
int coll__net_limit_flight(int fd);

/* Does this errno of a connection's end mean that the other end's host, or the network
 * to it, has fallen silent? */
int coll__net_is_silence(int err);

/* Is some written data not acknowledged by the other end's kernel?  Sets also for how
 * many seconds that kernel has not been heard. */
int coll__net_is_unheard(int fd, double *silence);

#endif
