/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous.h - the rendezvous over TCP that several bootstraps share.
 *
 * Rank 0 listens at an address that all ranks know.  Each other rank connects to it, and
 * both prove that they know the job's secret.  Rank 0 hands each rank its parent's block
 * and nothing else: a few hundred bytes a rank, and a bounded number of sockets
 * (rendezvous_table.h).  Everything else goes through the tree.
 */
#ifndef COLL_LIB_BOOT_RENDEZVOUS_H
#define COLL_LIB_BOOT_RENDEZVOUS_H

#include "lib/boot/boot.h"
#include "lib/net/net.h"

#include <stdatomic.h>

#define COLL__MAX_PORTS 64

/* Where to meet, and as which rank. */
struct coll__rendezvous_spec {
    int rank, size;
    uint32_t generation; /* number of earlier rendezvous with this secret */
    unsigned char secret[COLL__SECRET_BYTES];
    const char *remedy; /* for errors: "is COLL_JOB_SECRET the same on every rank?" */
    /* Rank 0's addresses, all of which are tried.  Their port and the n_ports - 1 after
     * it are candidates; rank 0 takes the first free one. */
    struct coll__addr addrs[COLL__MAX_ADDRS];
    int n_addrs, n_ports;
    int listen_fd; /* rank 0: a socket that listens already, or -1 */
    int is_brief;  /* listen_fd serves this rendezvous only, and listens already */
    int is_home;   /* rank 0 listens there already, for good (handle.c) */
    int knows_ended; /* the launcher tells which ranks have ended (ended.h) */
    int n_seats;   /* most ranks that wait at rank 0 at a time; 0: the default */
};

/* Does this host name mean that all ranks are on this host? */
int coll__rendezvous_is_this_host(const char *host);

/* Return the port of a rendezvous, made from these words. */
uint16_t coll__rendezvous_port_of(const char *words);

/* Fill in the addresses of the host name (or address) and port.  Rank 0 listens on every
 * interface, unless the name means this host only. */
int coll__rendezvous_resolve(struct coll__rendezvous_spec *spec,
                             const char *host, uint16_t port);

/* Meet the other ranks within boot->timeout.
 *
 * Result:    boot->rank, size, state and a fresh boot->secret.
 * Ownership: spec is read during the call only; listen_fd is the listener's from now on,
 *            whatever the status.
 * Errors:    COLL_ERR_BOOTSTRAP naming the rank that did not come, came twice
 *            or disagrees; COLL_ERR_SYSTEM, COLL_ERR_NOMEM; all logged.
 */
int coll__rendezvous_open(struct coll__boot *boot,
                          const struct coll__rendezvous_spec *spec);

/* Meet for the next group of a job; *n_opened counts them, the same on every rank.  The
 * secret in spec is wiped. */
int coll__rendezvous_meet_again(struct coll__boot *boot,
                                struct coll__rendezvous_spec *spec,
                                atomic_uint *n_opened);

/* As struct coll__boot_ops. */
int coll__rendezvous_places(struct coll__boot *boot, const void *in, size_t len,
                            void *out);
void coll__rendezvous_tell(struct coll__boot *boot, int status,
                           const char *text);
void coll__rendezvous_close(struct coll__boot *boot);

#endif
