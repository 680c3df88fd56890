/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - bootstraps: which ranks there are, and one way to exchange a few bytes.
 *
 * A bootstrap is one file and one line in list.c.  It knows its rank, the number of
 * ranks, and how a rank learns where its parent in the tree (lib/net/tree.h) listens.
 * Everything else (the control connections, the transports) is built from that.  It
 * never sees a collective.  Its calls come from one thread.
 */
#ifndef COLL_LIB_BOOT_BOOT_H
#define COLL_LIB_BOOT_BOOT_H

#include "include/coll/coll.h"
#include "lib/net/auth.h"
#include "lib/trace/log.h"

struct coll__boot;
struct coll__words;

struct coll__boot_ops {
    const char *name; /* "pmix", the value of COLL_BOOTSTRAP */
    const char *what; /* a description in one line */
    /* A variable that only this launcher sets; the job ends with the launcher's process.
     * NULL: the launcher has a connection, or users start ranks this way. */
    const char *given;
    /* The variables that identify one rank of one job, the rank's first, NULL at the end.
     * None: programs that a rank starts may be ranks, too. */
    const char *identity[6];

    /* Does the environment describe a job of this kind?  1: yes, 0: no, negative: a
     * status (logged), because the description is incomplete. */
    int (*detect)(void);

    /* Find rank, size, the secret and is_one_host.
     * Errors are logged; nothing is left to close then. */
    int (*open)(struct coll__boot *boot);

    /* Hand in len bytes and get the parent's bytes in out[size * len], at the parent's
     * rank.  Other ranks' entries may be filled in or unchanged.  Collective, once;
     * returns within boot->timeout. */
    int (*places)(struct coll__boot *boot, const void *in, size_t len,
                  void *out);

    /* This rank cannot join, for this reason: tell the other ranks not to wait for it,
     * as far as the bootstrap can. */
    void (*tell)(struct coll__boot *boot, int status, const char *text);

    void (*close)(struct coll__boot *boot);
};

/* A bootstrap's news while the tree is being connected: a rank has died or cannot join.
 * failed() is called on the reactor's thread with its lock held, at most once, between
 * places() and close(). */
struct coll__boot_news {
    void (*failed)(void *arg, int status, const char *text); /* or NULL */
    void *arg;
};

/* The group from which a larger one is made: when it has failed, or a newcomer has gone,
 * its ranks do not wait for others any more. */
struct coll__boot_origin {
    /* Return the status with which it has failed, and why; or COLL_OK.  Called now and
     * then on any thread.  NULL: there is no such group. */
    int (*failed)(void *arg, char why[COLL__TEXT_MAX]);
    /* Go on to the next newcomer that has left the launcher (lobby.h): 1, and the rank that
     * it was to be; 0: no other one so far.  Called now and then on rank 0, by the thread
     * that makes the group.  NULL: there is no such group. */
    int (*gone)(void *arg, int *rank);
    void *arg;
};

/* Filled in by open(); the caller's storage. */
struct coll__boot {
    const struct coll__boot_ops *ops;
    int rank, size;
    int is_one_host;             /* all ranks are on the same host */
    struct coll__boot_news news; /* the caller sets it, the reactor locked */
    struct coll__boot_origin origin; /* the caller sets it before open() */
    double timeout;              /* s, for each call */
    /* The ranks prove this secret to each other on sockets.  It comes from the unique id,
     * from COLL_JOB_SECRET, or from rank 0, and then the bootstrap spreads it. */
    unsigned char secret[COLL__SECRET_BYTES];
    void *state; /* for the bootstrap only */
    struct coll__words *lobby; /* a newcomer's connection (lobby.h), or NULL */
};

/* All bootstraps in order of preference, NULL at the end. */
extern const struct coll__boot_ops *const coll__boots[];

/* Open the first bootstrap that the environment describes (or the one that
 * COLL_BOOTSTRAP forces).  Errors are logged; then boot must not be closed. */
int coll__boot_open_env(struct coll__boot *boot, double timeout);

/* Open the rendezvous that the unique id names.  The caller has set boot->timeout and
 * boot->origin. */
int coll__boot_open_id(struct coll__boot *boot, const struct coll_unique_id *id,
                       int nranks, int rank);

/* The same for the processes with these handles. */
int coll__boot_open_handles(struct coll__boot *boot,
                            const struct coll_handle handles[], int nranks,
                            int rank, uint64_t uuid);

/* Free the socket that awaits an id's rank 0.  Does nothing if rank 0 has joined, or the
 * id is zero. */
void coll__boot_free_id(const struct coll_unique_id *id);

/* Make a bootstrap of the caller's own allgather. */
int coll__boot_open_oob(struct coll__boot *boot, const struct coll_oob *oob,
                        double timeout);

/* As the operations above; a status, logged. */
int coll__boot_places(struct coll__boot *boot, const void *in, size_t len,
                      void *out);
void coll__boot_tell(struct coll__boot *boot, int status, const char *text);
void coll__boot_close(struct coll__boot *boot);

/* Return the status with which the group's origin has failed, and why; or COLL_OK. */
int coll__boot_origin_failed(const struct coll__boot *boot,
                             char why[COLL__TEXT_MAX]);

/* For bootstraps that have an allgather: use it to fill in secret (random bytes of rank
 * 0) and is_one_host. */
int coll__boot_share(struct coll__boot *boot,
                     int (*allgather)(struct coll__boot *boot, const void *in,
                                      size_t len, void *out));

/* A tell() that does nothing, for bootstraps that reach other ranks only by places(). */
void coll__boot_tell_nobody(struct coll__boot *boot, int status,
                            const char *text);

#endif
