/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - bootstraps: who is there, and one way to exchange a few bytes.
 *
 * A bootstrap is one file and one line in list.c.  It knows its rank, the
 * number of ranks, and how a rank learns where its parent in the tree
 * (lib/net/tree.h) awaits it; everything else (the control connections, the
 * transports) is built from that.  It never sees a collective.  Its calls come
 * from one thread.
 */
#ifndef COLL_LIB_BOOT_BOOT_H
#define COLL_LIB_BOOT_BOOT_H

#include "include/coll/coll.h"
#include "lib/net/auth.h"

struct coll__boot;

struct coll__boot_ops {
    const char *name; /* "pmix", as COLL_BOOTSTRAP knows it */
    const char *what; /* one line */
    /* A variable that this launcher alone sets, and whose process ends a job of which
     * it is the end; NULL: it has a connection, or users start ranks this way. */
    const char *given;
    /* The variables that tell one rank of one job from all others, that of the rank
     * first, NULL at the end; none: programs that a rank starts may be ranks, too. */
    const char *identity[6];

    /* Say whether the environment describes a job of this kind: 1 yes, 0 no,
     * negative status (logged) when the description is only half there. */
    int (*detect)(void);

    /* Find rank, size, the secret and is_one_host.
     * Errors are logged; nothing remains then. */
    int (*open)(struct coll__boot *boot);

    /* Hand in len bytes and have the parent's in out[size * len], at its rank's
     * place; others are there too or stay as they were.  Collective, once;
     * returns within boot->timeout. */
    int (*places)(struct coll__boot *boot, const void *in, size_t len,
                  void *out);

    /* This rank cannot join, for this reason: the others are not to wait for
     * it, as far as the bootstrap can tell them. */
    void (*tell)(struct coll__boot *boot, int status, const char *text);

    void (*close)(struct coll__boot *boot);
};

/* What a bootstrap hears while the tree is being connected: a rank has died, or
 * cannot join.  failed() is called on the reactor's thread with its lock held,
 * at most once, between places() and close(). */
struct coll__boot_news {
    void (*failed)(void *arg, int status, const char *text); /* or NULL */
    void *arg;
};

/* Filled in by open(); the caller's storage. */
struct coll__boot {
    const struct coll__boot_ops *ops;
    int rank, size;
    int is_one_host;             /* all ranks are on the same */
    struct coll__boot_news news; /* the caller's to set, the reactor locked */
    double timeout;              /* s, for each call */
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

/* Give back what awaits rank 0 of an id; nothing where it has joined, or the id is
 * zero. */
void coll__boot_free_id(const struct coll_unique_id *id);

/* Open the caller's own allgather. */
int coll__boot_open_oob(struct coll__boot *boot, const struct coll_oob *oob,
                        double timeout);

/* As the operations above; a status, logged. */
int coll__boot_places(struct coll__boot *boot, const void *in, size_t len,
                      void *out);
void coll__boot_tell(struct coll__boot *boot, int status, const char *text);
void coll__boot_close(struct coll__boot *boot);

/* For bootstraps that have an allgather: fill in secret (rank 0's random bytes)
 * and is_one_host by it. */
int coll__boot_share(struct coll__boot *boot,
                     int (*allgather)(struct coll__boot *boot, const void *in,
                                      size_t len, void *out));

/* For those that have no other way than places(). */
void coll__boot_tell_nobody(struct coll__boot *boot, int status,
                            const char *text);

#endif
