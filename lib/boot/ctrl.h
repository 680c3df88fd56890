/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl.h - control connections: a tree of TCP sockets over the ranks of a
 * communicator, for all that is rare: exchange at start, leaving together,
 * noticing the dead, aborting, and asking who is where.
 *
 * One thread per process (the reactor) owns every control socket of every
 * communicator and sleeps in epoll; so a notice passes through a rank at once
 * even while its own threads compute.  A rank's process that ends is noticed by
 * its neighbours in the tree (its sockets close) and by the ranks of its host
 * (pidfd), and each notice floods the tree.
 */
#ifndef COLL_LIB_BOOT_CTRL_H
#define COLL_LIB_BOOT_CTRL_H

#include "lib/boot/boot.h"

struct coll__ctrl;

#define COLL__TEXT_MAX 512 /* bytes of a reason or an answer, with its NUL */

/* What the reactor asks of the communicator; called on the reactor's thread,
 * never after coll__ctrl_close() has returned, never with its locks held. */
struct coll__ctrl_events {
    /* The group has failed: a peer died (COLL_ERR_PEER), or a rank aborted
     * with this status.  text is one sentence.  Called at most once. */
    void (*failed)(void *arg, int status, const char *text);

    /* Say where this rank is: the number of operations it has started so far,
     * and in words what it does now ("in allreduce #12", "in none"). */
    void (*where)(void *arg, uint64_t *n_started, char text[COLL__TEXT_MAX]);
    void *arg;
};

/* A rank's answer to coll__ctrl_ask(). */
struct coll__ctrl_answer {
    int has_answered;
    uint64_t n_started;
    char text[COLL__TEXT_MAX];
};

/* Connect the tree over the bootstrap's ranks.  Collective.
 *
 * Result:    *ctrl, with the reactor running.
 * Ownership: *ctrl is the caller's, to end by coll__ctrl_close(); boot is used
 *            during the call only; events is copied.
 * Errors:    COLL_ERR_BOOTSTRAP, COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged.
 */
int coll__ctrl_open(struct coll__boot *boot,
                    const struct coll__ctrl_events *events,
                    struct coll__ctrl **ctrl);

/* Gather len bytes (any len, also 0) from each rank into out[size * len], on
 * every rank, in O(log size) rounds.  Collective; one caller at a time.
 *
 * Errors:    COLL_ERR_TIMEOUT naming the ranks not heard from, COLL_ERR_PEER,
 *            or the status of an abort, logged.
 */
int coll__ctrl_allgather(struct coll__ctrl *ctrl, const void *in, size_t len,
                         void *out, double timeout);

/* Tell every other rank that the group has failed; does not wait and does not
 * call this rank's own failed().  Any thread. */
void coll__ctrl_abort(struct coll__ctrl *ctrl, int status, const char *text);

/* Ask every other rank where it is, waiting `timeout` seconds at most.
 *
 * Shapes:    answers[size]; this rank's own is filled in as well.
 */
void coll__ctrl_ask(struct coll__ctrl *ctrl, double timeout,
                    struct coll__ctrl_answer *answers);

/* Leave.
 *
 * Shapes:    is_orderly != 0: wait (timeout seconds at most) until every rank
 *            leaves, so that nobody takes this rank for dead; the others learn
 *            of an end that is not orderly as of a death.
 * Errors:    COLL_ERR_TIMEOUT, COLL_ERR_PEER, logged; ctrl is gone all the
 *            same.  The last communicator's close ends the reactor.
 */
int coll__ctrl_close(struct coll__ctrl *ctrl, int is_orderly, double timeout);

#endif
