/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - who may come in: listening sockets, and the proof of the secret.
 *
 * A connection begins with a fixed-size exchange; no length from the wire is
 * believed before it has succeeded:
 *
 *   connector  hello      which group, which rank wants which, a nonce
 *   listener   challenge  a nonce, and HMAC(secret, hello + nonce)
 *   connector  proof      HMAC(secret, hello + nonce) in another role
 *
 * The listening side runs on the reactor; one listening socket per process
 * serves every group in it (and one more while a unique id waits for rank 0).
 * A group in this process that awaits connections has a gate; when the last
 * gate goes, the listening sockets are closed.
 */
#ifndef COLL_LIB_NET_LISTENER_H
#define COLL_LIB_NET_LISTENER_H

#include "lib/net/auth.h"
#include "lib/net/net.h"

enum coll__listener_kind {
    DOOR_BOOT,
    DOOR_CTRL,
    DOOR_DATA
}; /* what it is for */

/* The connector's first words, as they travel; integers little-endian. */
struct coll__hello {
    char magic[8];
    unsigned char group[COLL__GROUP_BYTES];
    uint32_t kind; /* enum coll__listener_kind */
    uint32_t from, to, size;
    uint32_t generation; /* the how-many-eth rendezvous by this secret; of
                          * DOOR_DATA the channel */
    uint32_t pid;
    unsigned char nonce[COLL__NONCE_BYTES];
};

/* Where the connections to one rank of one group arrive. */
struct coll__gate {
    unsigned char group[COLL__GROUP_BYTES];
    unsigned char secret[COLL__SECRET_BYTES];
    uint32_t kind, rank, generation;
    int is_full; /* who comes is to come again, a little later */
    /* An authenticated connection; fd is the callee's, session[COLL__SECRET_BYTES]
     * the connection's own secret, or NULL where nothing is sealed.  On the reactor's
     * thread, lock held. */
    void (*arrived)(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session);
    void *owner;             /* whose gate it is; for arrived() */
    struct coll__gate *next; /* the listener's */
};

/* Make ready to let connections in, before the listener is opened for them, and
 * take the gate out again; lock held.  The group's name is computed from
 * gate->secret. */
void coll__gate_add(struct coll__gate *gate);
void coll__gate_remove(struct coll__gate *gate);

/* Have a listening socket that others reach, and say where; the reactor is in
 * use and not locked.
 *
 * Result:    the number of addresses, or a status, logged.
 */
int coll__listener_open(enum coll__reach reach,
                        struct coll__addr addrs[COLL__MAX_ADDRS]);

/* Have a listening socket at just this port, as coll__net_listen_at(). */
int coll__listener_open_at(const struct coll__addr *at, int is_quiet);

/* Let connections in by this listening socket, which becomes the listener's,
 * whatever the status.  A brief one is for one rendezvous alone, at whose end
 * coll__listener_close_spare() closes it, the reactor locked. */
int coll__listener_adopt(int fd, int is_brief);
void coll__listener_close_spare(int fd);

#endif
