/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - bootstraps: who is there, and one way to exchange a few bytes.
 *
 * A bootstrap is one file and one line in list.c.  It knows its rank, the
 * number of ranks, and how to gather a small block from each; everything else
 * (the control connections, the transports) is built from that.  It never
 * sees a collective.  Its calls come from one thread.
 */
#ifndef COLL_LIB_BOOT_BOOT_H
#define COLL_LIB_BOOT_BOOT_H

#include "include/coll/coll.h"

#define COLL__SECRET_BYTES 32

struct coll__boot;

struct coll__boot_ops {
    const char *name; /* "pmix", as COLL_BOOTSTRAP knows it */
    const char *what; /* one line */

    /* Say whether the environment describes a job of this kind: 1 yes, 0 no,
     * negative status (logged) when the description is only half there. */
    int (*detect)(void);

    /* Find rank and size (and the secret, where the way is private).
     * Errors are logged; nothing remains then. */
    int (*open)(struct coll__boot *boot);

    /* Gather len bytes from each rank into out[size * len], on every rank.
     * Collective; returns within boot->timeout. */
    int (*allgather)(struct coll__boot *boot, const void *in, size_t len,
                     void *out);

    void (*close)(struct coll__boot *boot);
};

/* Filled in by open(); the caller's storage. */
struct coll__boot {
    const struct coll__boot_ops *ops;
    int rank, size;
    double timeout; /* s, for each call */
    /* What the ranks prove to each other on sockets; from the unique id, from
     * COLL_JOB_SECRET, or made by rank 0 and spread by the bootstrap. */
    unsigned char secret[COLL__SECRET_BYTES];
    void *state; /* the bootstrap's own */
};

/* All bootstraps in order of preference, NULL at the end. */
extern const struct coll__boot_ops *const coll__boots[];

/* Open the first bootstrap that the environment describes (or the one that
 * COLL_BOOTSTRAP forces).  Errors are logged; boot is then not to be closed. */
int coll__boot_open_env(struct coll__boot *boot, double timeout);

/* Open the rendezvous that the unique id names. */
int coll__boot_open_id(struct coll__boot *boot, const struct coll_unique_id *id,
                       int nranks, int rank, double timeout);

/* Give up an id that this process made and that nobody has joined. */
void coll__boot_drop_id(const struct coll_unique_id *id);

/* Open the caller's own allgather. */
int coll__boot_open_oob(struct coll__boot *boot, const struct coll_oob *oob,
                        double timeout);

/* Gather through the bootstrap; a status, logged. */
int coll__boot_allgather(struct coll__boot *boot, const void *in, size_t len,
                         void *out);

void coll__boot_close(struct coll__boot *boot);

#endif
