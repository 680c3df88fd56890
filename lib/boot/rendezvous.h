/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous.h - the rendezvous over TCP that several bootstraps share.
 *
 * Rank 0 listens at an address that all know; each other rank connects to it
 * and both prove that they know the job's secret.  Rank 0 hands each rank its
 * parent's block and nothing else: a few hundred bytes a rank, and a bounded
 * number of sockets (rendezvous_table.h).  All else goes through the tree.
 */
#ifndef COLL_LIB_BOOT_RENDEZVOUS_H
#define COLL_LIB_BOOT_RENDEZVOUS_H

#include "lib/boot/boot.h"
#include "lib/net/net.h"

#include <stdatomic.h>

#define COLL__MAX_PORTS 64

/* Where and as whom to meet. */
struct coll__rendezvous_spec {
    int rank, size;
    uint32_t generation; /* how many times before this secret met here */
    unsigned char secret[COLL__SECRET_BYTES];
    const char *remedy; /* "is COLL_JOB_SECRET the same on every rank?" */
    /* Rank 0's addresses, tried in turn; the port and the n_ports - 1 that
     * follow it are candidates, of which rank 0 takes the first free one. */
    struct coll__addr addrs[COLL__MAX_ADDRS];
    int n_addrs, n_ports;
    int listen_fd; /* rank 0: a socket that listens there already, or -1 */
    int is_brief;  /* it serves this rendezvous alone, and listens already */
    int n_seats;   /* ranks that may wait there at a time; 0: as it can */
};

/* Does the host's name say that all ranks are here? */
int coll__rendezvous_is_this_host(const char *host);

/* The port of a rendezvous that these words name. */
uint16_t coll__rendezvous_port_of(const char *words);

/* Fill in where the host name (or address) and port lead to.  Rank 0 listens
 * on every interface, unless the name says that it means this host alone. */
int coll__rendezvous_resolve(struct coll__rendezvous_spec *spec,
                             const char *host, uint16_t port);

/* Meet the other ranks within boot->timeout.
 *
 * Result:    boot->rank, size, state and a fresh boot->secret.
 * Ownership: spec is read during the call only; listen_fd becomes the listener's,
 *            whatever the status.
 * Errors:    COLL_ERR_BOOTSTRAP naming the rank that did not come, came twice
 *            or disagrees; COLL_ERR_SYSTEM, COLL_ERR_NOMEM; all logged.
 */
int coll__rendezvous_open(struct coll__boot *boot,
                          const struct coll__rendezvous_spec *spec);

/* The same for the how-many-eth group of a job, which *n_opened counts, alike on every
 * rank; the secret in spec is wiped. */
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
