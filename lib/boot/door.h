/* SPDX-License-Identifier: BSD-3-Clause */
/* door.h - who may come in: listening sockets, and the proof of the secret.
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
 * A group in this process that awaits connections has a gate.
 */
#ifndef COLL_LIB_BOOT_DOOR_H
#define COLL_LIB_BOOT_DOOR_H

#include "lib/boot/auth.h"
#include "lib/boot/net.h"

enum coll__door_kind { DOOR_BOOT, DOOR_CTRL }; /* what a connection is for */

/* The connector's first words, as they travel; integers little-endian. */
struct coll__hello {
    char magic[8];
    unsigned char group[COLL__GROUP_BYTES];
    uint32_t kind; /* enum coll__door_kind */
    uint32_t from, to, size;
    uint32_t generation; /* the how-many-eth rendezvous by this secret */
    uint32_t pid;
    unsigned char nonce[COLL__NONCE_BYTES];
};

/* Where the connections to one rank of one group arrive. */
struct coll__gate {
    unsigned char group[COLL__GROUP_BYTES];
    unsigned char secret[COLL__SECRET_BYTES];
    uint32_t kind, rank, generation;
    /* An authenticated connection; fd is the callee's.  On the reactor's
     * thread, lock held. */
    void (*arrived)(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello);
    struct coll__gate *next; /* the door's */
};

/* Make ready to let connections in and take them out again; lock held.  The
 * group's name is computed from gate->secret. */
void coll__gate_add(struct coll__gate *gate);
void coll__gate_remove(struct coll__gate *gate);

/* Have a listening socket that others reach, and say where; the reactor is in
 * use and not locked.
 *
 * Result:    the number of addresses, or a status, logged.
 */
int coll__door_open(enum coll__reach reach,
                    struct coll__addr addrs[COLL__MAX_ADDRS]);

/* Have a listening socket at just this port, as coll__net_listen_at(). */
int coll__door_open_at(const struct coll__addr *at, int is_quiet);

/* Let connections in by this listening socket, which becomes the door's,
 * whatever the status.  A brief one is wanted for one rendezvous, and
 * coll__door_close_spare() closes it then, the reactor locked, if the door has
 * another one to go on with. */
int coll__door_adopt(int fd, int is_brief);
void coll__door_close_spare(int fd);

/* How knocking ended. */
enum coll__knock {
    KNOCK_IN,      /* both sides have proved the secret */
    KNOCK_UNKNOWN, /* the other side knows no such group */
    KNOCK_EARLY,   /* the group's rendezvous has not begun yet: try again */
    KNOCK_FALSE,   /* the other side could not prove the secret */
    KNOCK_LOST,    /* the connection broke */
    KNOCK_SILENT   /* no answer before the deadline */
};

/* Prove the secret on the connected socket fd, from the connecting side; fills
 * in the hello's magic, group, nonce and pid. */
enum coll__knock
coll__door_knock(int fd, const unsigned char secret[COLL__SECRET_BYTES],
                 struct coll__hello *hello, double deadline);

#endif
