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
#ifndef COLL_LIB_CTRL_CTRL_H
#define COLL_LIB_CTRL_CTRL_H

#include "lib/boot/boot.h"
#include "lib/trace/history.h"

struct coll__ctrl;

#define COLL__TEXT_MAX 512 /* bytes of a reason or an answer, with its NUL */

/* A call in which a rank waits, for the others to judge. */
struct coll__ctrl_call {
    int rank;               /* who waits */
    int peer;               /* for whom: of a send or receive; -1: for all */
    int is_blocked;         /* its caller starts nothing else before the end */
    uint64_t n_started;     /* collectives that it has started */
    struct coll__head head; /* what it waits in */
};

enum coll__verdict {
    VERDICT_HERE,  /* this rank has come to that call */
    VERDICT_LATE,  /* not yet */
    VERDICT_NEVER, /* the two ranks disagree: it is not going to */
    N_VERDICTS
};

/* What the reactor asks of the communicator, never after coll__ctrl_close() has
 * returned. */
struct coll__ctrl_events {
    /* The group has failed: a peer died (COLL_ERR_PEER), or a rank aborted
     * with this status.  text is one sentence.  Called at most once, on the
     * reactor's thread, its lock not held. */
    void (*failed)(void *arg, int status, const char *text);

    /* Judge another rank's call.  text becomes what this rank does ("in allreduce
     * #12 (...)"), or with VERDICT_NEVER the sentence by which the group fails.
     * is_gathering: it waits for others in coll__ctrl_allgather().  Any thread,
     * the lock held: it takes none itself, and waits for nothing. */
    enum coll__verdict (*judge)(void *arg, const struct coll__ctrl_call *call,
                                int is_gathering, char text[COLL__TEXT_MAX]);
    void *arg;
};

#define COLL__NAMED 16

/* What was heard about a call.  Of one to all ranks: how many are late, how many
 * were not heard of in time, and the first of either; of one to a peer: that
 * peer alone. */
struct coll__ctrl_roll {
    int n_late, n_silent;
    int late[COLL__NAMED], silent[COLL__NAMED]; /* ascending */
    char text[COLL__WHERE_MAX]; /* where late[0], or the peer, is */
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

/* Make a secret that the group's ranks alone know, for the use of that name. */
void coll__ctrl_secret(const struct coll__ctrl *ctrl, const char *use,
                       unsigned char secret[COLL__SECRET_BYTES]);

#define COLL__TAG_BYTES 16

/* This rank's part of a tree that is to be divided. */
struct coll__ctrl_part {
    int rank, size;
    const int *ranks; /* [size]: the parts' ranks by their numbers in whole */
    unsigned char tag[COLL__TAG_BYTES]; /* random, alike on the part's ranks */
    int status; /* COLL_OK, or why this rank cannot join: all are told */
};

/* Before the first exchange by which the ranks agree on the parts, and after
 * coll__ctrl_divide(): what other ranks do about their parts in between, this
 * rank being slower, is kept for it. */
void coll__ctrl_divide_begin(struct coll__ctrl *whole);
void coll__ctrl_divide_end(struct coll__ctrl *whole);

/* Say whether a part's tree, ranks[size] by their numbers in the whole, runs
 * along the whole's: then its processes are connected already. */
int coll__ctrl_is_along(const int *ranks, int size, int whole_size);

/* Connect a tree over the ranks of each part, through the whole: no rendezvous,
 * and the whole's news end the wait at once.  Collective over the whole, but
 * for a rank that is in no part when all parts are along.
 *
 * Shapes:    part is NULL on a rank that is in none; are_along, alike on all
 *            ranks: all parts' trees run along the whole's.
 * Result:    *ctrl, as coll__ctrl_open(), untouched where part is NULL.  Until
 *            coll__ctrl_settle() what fails the whole fails it too, and its
 *            sentences number ranks as the whole does.
 * Ownership: part is used during the call only, events is copied; whole stays
 *            until coll__ctrl_settle() or the end of *ctrl.
 * Errors:    COLL_ERR_PEER and what else fails the whole meanwhile; as
 *            coll__ctrl_open(), on the part's ranks alone.  Logged.
 */
int coll__ctrl_divide(struct coll__ctrl *whole,
                      const struct coll__ctrl_part *part, int are_along,
                      const struct coll__ctrl_events *events, double timeout,
                      struct coll__ctrl **ctrl);

/* The caller knows the group by its own numbers from now on, and the whole
 * watches over it no more.  Not so where a part has failed before: then return
 * why, logged in the numbers that the caller still knows. */
int coll__ctrl_settle(struct coll__ctrl *ctrl);

/* Return the status by which the group has failed, or COLL_OK. */
int coll__ctrl_status(struct coll__ctrl *ctrl);

/* Tell hosts apart that have the same ids because they are clones of one snapshot: 0 on
 * the first of them, and where there are no others, and another number on each other;
 * alike for all ranks of a host. */
int coll__ctrl_clone(const struct coll__ctrl *ctrl);

/* Gather len bytes (any len, also 0) from each rank into out[size * len], on
 * every rank, in O(log size) rounds.  Collective; one caller at a time.
 *
 * Errors:    COLL_ERR_TIMEOUT naming the ranks not heard from, COLL_ERR_PEER,
 *            or the status of an abort, logged.
 */
int coll__ctrl_allgather(struct coll__ctrl *ctrl, const void *in, size_t len,
                         void *out, double timeout);

/* The same in two, for a caller that has something else to do: in is copied;
 * out[size * len] is filled in at the end.
 *
 * Shapes:    until: a time on the clock up to which this call waits; timeout: if
 *            that is the end of patience, how long that was, else < 0.
 * Result:    COLL_OK, or COLL_IN_PROGRESS for a negative timeout.
 */
int coll__ctrl_exchange_start(struct coll__ctrl *ctrl, const void *in,
                              size_t len);
int coll__ctrl_exchange_end(struct coll__ctrl *ctrl, void *out, double until,
                            double timeout);

/* Tell every other rank that the group has failed; does not wait and does not
 * call this rank's own failed().  Any thread. */
void coll__ctrl_abort(struct coll__ctrl *ctrl, int status, const char *text);

/* Ask the others about a call that takes long: its peer, or, one question of the
 * whole tree at a time, all ranks.  Returns at once.
 *
 * Shapes:    since: what was asked, or heard of all ranks, after that time will
 *            do, whoever asked.
 * Result:    1, and in *asked when, or `since` of a question to all; 0 where another
 *            thread is busy here, or another question to a peer is to be heard
 *            first: to be tried again.  Ranks that disagree fail the group; what
 *            else there is to say is heard.
 * Cost:      a question to all: four messages at most over each connection of
 *            the tree, also where all ranks ask; to a peer: there and back.
 */
int coll__ctrl_ask(struct coll__ctrl *ctrl, const struct coll__ctrl_call *call,
                   double since, double *asked);

/* What was heard about that call after a time: 1 and *roll, or 0. */
int coll__ctrl_heard(struct coll__ctrl *ctrl,
                     const struct coll__ctrl_call *call, double since,
                     struct coll__ctrl_roll *roll);

/* Give ranks so long, in s, for each level of the tree to answer; 0.1 s unless it is
 * called.  The same on all ranks, before one asks. */
void coll__ctrl_answer_within(struct coll__ctrl *ctrl, double level_time);

/* How long ranks may take to answer, s; who is silent then is given up. */
double coll__ctrl_answer_time(const struct coll__ctrl *ctrl);

/* The name of that rank's host, for sentences. */
const char *coll__ctrl_host(const struct coll__ctrl *ctrl, int rank);

/* How many messages this rank has sent, or passed on, for such questions. */
uint64_t coll__ctrl_n_questions(struct coll__ctrl *ctrl);

/* Leave.
 *
 * Shapes:    is_orderly != 0: wait (timeout seconds at most) until every rank
 *            leaves, so that nobody takes this rank for dead; the others learn
 *            of an end that is not orderly as of a death.
 * Errors:    COLL_ERR_TIMEOUT, COLL_ERR_PEER, logged; ctrl is gone all the
 *            same.  The last communicator's close ends the reactor.
 */
int coll__ctrl_close(struct coll__ctrl *ctrl, int is_orderly, double timeout);

/* Leave in order, in two: all ranks come to both.  While the end returns
 * COLL_IN_PROGRESS, as coll__ctrl_exchange_end(), ctrl stays.  lingers: wait for
 * the neighbours to close, too, as one that is going to exit has to. */
int coll__ctrl_close_start(struct coll__ctrl *ctrl);
int coll__ctrl_close_end(struct coll__ctrl *ctrl, double until, double timeout,
                         int lingers);

#endif
