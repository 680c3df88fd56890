/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - who may connect: listening sockets, and the proof of the secret.
 *
 * A connection begins with a fixed-size exchange.  Until it has succeeded, no length
 * from the network is trusted:
 *
 *   connector  hello      its group, its rank, the rank that it wants, a nonce
 *   listener   challenge  a nonce, and HMAC(secret, hello + nonce)
 *   connector  proof      HMAC(secret, hello + nonce) in another role
 *
 * The listening side runs on the reactor; one listening socket per process
 * serves every group in it (and one more while a unique id waits for rank 0).
 * A group in this process that awaits connections has a gate; when the last
 * gate is removed, the listening sockets are closed.
 */
#ifndef COLL_LIB_NET_LISTENER_H
#define COLL_LIB_NET_LISTENER_H

#include "lib/net/auth.h"
#include "lib/net/net.h"

enum coll__listener_kind {
    GATE_BOOT,
    GATE_CTRL,
    GATE_DATA,
    GATE_HOME /* ranks of its group may come before their rendezvous begins */
};            /* what it is for */

/* The connector's first message, as it travels; integers little-endian. */
struct coll__hello {
    char magic[8];
    unsigned char group[COLL__GROUP_BYTES];
    uint32_t kind; /* enum coll__listener_kind */
    uint32_t from, to, size;
    uint32_t generation; /* number of the rendezvous with this secret; for
                          * GATE_DATA, the channel */
    uint32_t pid;
    unsigned char nonce[COLL__NONCE_BYTES];
};

/* Accepts the connections to one rank of one group. */
struct coll__gate {
    unsigned char group[COLL__GROUP_BYTES];
    unsigned char secret[COLL__SECRET_BYTES];
    uint32_t kind, rank, generation;
    int is_full; /* connectors are told to try again a little later */
    /* A connection has proved the secret.  The callee owns fd.
     * session[COLL__SECRET_BYTES] is the connection's session secret, or NULL if
     * nothing is sealed.  On the reactor's thread, lock held. */
    void (*arrived)(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session);
    void *owner;             /* the gate's owner; for arrived() */
    struct coll__gate *next; /* for the listener only */
};

/* Add a gate before the listener is opened for it, and remove it again; lock held.  The
 * group's name is computed from gate->secret. */
void coll__gate_add(struct coll__gate *gate);
void coll__gate_remove(struct coll__gate *gate);

/* Make sure that a listening socket is open that others reach, and return its
 * addresses; the reactor is in use and not locked.
 *
 * Result:    the number of addresses, or a status, logged.
 */
int coll__listener_open(enum coll__reach reach,
                        struct coll__addr addrs[COLL__MAX_ADDRS]);

/* Open a listening socket at exactly this port, as coll__net_listen_at() does. */
int coll__listener_open_at(const struct coll__addr *at, int is_quiet);

/* Accept connections from this listening socket.  The listener owns it from now on,
 * whatever the status.  A brief socket serves one rendezvous only;
 * coll__listener_close_spare() closes it at its end, the reactor locked. */
int coll__listener_adopt(int fd, int is_brief);
void coll__listener_close_spare(int fd);

#endif
