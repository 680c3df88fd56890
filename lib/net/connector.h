/* SPDX-License-Identifier: BSD-3-Clause */
/* connector.h - find the process that awaits us behind one of several addresses.
 *
 * All addresses are called side by side, each beginning a little after the one
 * before it (RFC 8305, "happy eyeballs"), so that one that swallows what it is
 * sent, or where another job lives, holds up none of the others.  Who proves
 * the secret first is the one.
 */
#ifndef COLL_LIB_NET_CONNECTOR_H
#define COLL_LIB_NET_CONNECTOR_H

#include "lib/net/listener.h"

#define COLL__DIAL_TEXT 400

struct coll__connector {
    const struct coll__addr *addrs;
    int n_addrs; /* 1 to COLL__MAX_ADDRS */
    int n_ports; /* each address's port and those after it are tried in turn */
    const unsigned char *secret;
    struct coll__hello hello;  /* kind, from, to, size, generation */
    int is_patient;            /* who awaits us may not be up yet */
    const char *whom;          /* "rank 0", for a warning when it takes long */
    int (*is_over)(void *arg); /* asked now and then: is it of no use any more?
                                * NULL: never */
    /* Asked when the other one has proved itself, before this one does: may it still?
     * NULL: yes. */
    int (*may_prove)(void *arg);
    void *arg;
    int is_sealed; /* set on success: the connection has a secret of its own */
    unsigned char session[COLL__SECRET_BYTES]; /* this */
    int at; /* set on success: which address */
    char why
        [COLL__DIAL_TEXT]; /* set at the end: what came of the others, or of each
                                * address */
    int is_want;           /* set then: this process lacks descriptors */
    int is_strange; /* set then: somebody there knows no such group, or could not
                     * prove the secret */
    int is_otherwise; /* set then: somebody there would let in who encrypts as it
                       * does; why says what to do */
    int is_silent;    /* set then: no host has answered at any address for
                    * COLL__SILENCE seconds */
};

/* Connect, and prove the secret to each other.
 *
 * Result:    the socket, the caller's.
 * Errors:    not logged: COLL_ERR_TIMEOUT at the deadline, COLL_ERR_ABORTED
 *            soon after is_over() says so, and before it when
 *            there is no hope at any address: COLL_ERR_PEER (others live there,
 *            who know no such group, or is_silent), COLL_ERR_SYSTEM (the network
 *            does not lead there, or nobody listens and is_patient is 0).
 */
int coll__connector(struct coll__connector *connector, double deadline);

/* The same without waiting: begin (NULL: no memory), step until that returns
 * something else than COLL_IN_PROGRESS (COLL_OK: *fd is the caller's socket), and
 * end, which sets why, whatever came of it.  is_over is not asked, and the deadline
 * is the caller's to watch; connector is used until the end.  One thread at a time. */
struct coll__call;
struct coll__call *coll__connector_begin(struct coll__connector *connector);
int coll__connector_step(struct coll__call *call, int *fd);
void coll__connector_end(struct coll__call *call);

#endif
