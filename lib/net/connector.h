/* SPDX-License-Identifier: BSD-3-Clause */
/* connector.h - find the process that awaits us behind one of several addresses.
 *
 * All addresses are tried side by side, each a little after the one before (RFC 8305,
 * "happy eyeballs").  So an address that drops packets, or where another job listens,
 * does not delay the others.  The first process that proves the secret is the right
 * one.
 */
#ifndef COLL_LIB_NET_CONNECTOR_H
#define COLL_LIB_NET_CONNECTOR_H

#include "lib/net/listener.h"

#define COLL__CONNECTOR_TEXT 400

struct coll__connector {
    const struct coll__addr *addrs;
    int n_addrs; /* 1 to COLL__MAX_ADDRS */
    int n_ports; /* each address's port and those after it are tried in turn */
    const unsigned char *secret;
    struct coll__hello hello;  /* kind, from, to, size, generation */
    int is_patient;            /* the listener may not be up yet */
    const char *whom;          /* "rank 0", for a warning when it takes long */
    int (*is_over)(void *arg); /* called now and then; nonzero: the connection is
                                * no longer wanted.  NULL: it always is */
    /* Called when the peer has proved that it knows the secret, before this process
     * does: returns whether to continue.  NULL: always continue. */
    int (*may_prove)(void *arg);
    void *arg;
    int is_sealed; /* set on success: the connection has a secret of its own */
    unsigned char session[COLL__SECRET_BYTES]; /* the secret */
    int at; /* set on success: which address */
    char why
        [COLL__CONNECTOR_TEXT]; /* set at the end: the result of each address that
                                * failed */
    int is_want;           /* set on failure: this process lacks descriptors */
    int is_strange; /* set on failure: a process there does not know this group, or
                     * could not prove the secret */
    int is_otherwise; /* set on failure: COLL_NET_ENCRYPT differs at the other
                       * end; why says what to do */
    int is_silent;    /* set on failure: no address has answered for
                    * COLL__SILENCE seconds */
};

/* Connect, and prove the secret to each other.
 *
 * Result:    the socket, the caller's.
 * Errors:    not logged: COLL_ERR_TIMEOUT at the deadline; COLL_ERR_ABORTED soon after
 *            is_over() returns nonzero.  Before the deadline, if no address can
 *            succeed any more: COLL_ERR_PEER (strangers listen there, or is_silent),
 *            COLL_ERR_SYSTEM (no route, or no process listens and is_patient is 0).
 */
int coll__connector(struct coll__connector *connector, double deadline);

/* Connect without waiting: begin (NULL: no memory); step until it does not return
 * COLL_IN_PROGRESS (COLL_OK: *fd is the caller's socket); then end, which always sets
 * why.  is_over is not called, and the caller watches the deadline.  `connector` is used
 * until the end.  One thread at a time. */
struct coll__call;
struct coll__call *coll__connector_begin(struct coll__connector *connector);
int coll__connector_step(struct coll__call *call, int *fd);
void coll__connector_end(struct coll__call *call);

#endif
