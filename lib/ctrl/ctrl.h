/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl.h - control connections: a tree of TCP sockets over the ranks of a communicator,
 * for everything rare: exchanges at the start, leaving together, noticing deaths,
 * aborting, and stall checks.
 *
 * One thread per process (the reactor) owns every control socket of every communicator
 * and sleeps in epoll.  So a notice passes through a rank at once, even while the rank's
 * own threads compute.  When a rank's process ends, its neighbours in the tree notice
 * (its sockets close), and so do the ranks of its host (pidfd).  Each of them floods the
 * tree with the notice.
 */
#ifndef COLL_LIB_CTRL_CTRL_H
#define COLL_LIB_CTRL_CTRL_H

#include "lib/net/auth.h"
#include "lib/trace/history.h"
#include "lib/trace/log.h"

struct coll__boot;
struct coll__ctrl;

/* A call in which a rank waits; in a stall check other ranks compare it with their own
 * calls. */
struct coll__ctrl_call {
    int rank;               /* the rank that waits */
    int peer;               /* the peer of a send or receive; -1: all ranks */
    int is_blocked;         /* its caller starts no other call before it ends */
    uint64_t n_started;     /* collectives that it has started */
    struct coll__signature sig; /* the signature of the call */
};

enum coll__verdict {
    VERDICT_HERE,  /* this rank has come to that call */
    VERDICT_LATE,  /* this rank has not yet */
    VERDICT_NEVER, /* it never will: the two ranks disagree */
    N_VERDICTS
};

/* Callbacks to the communicator; none is running or comes once coll__ctrl_close() has
 * returned. */
struct coll__ctrl_events {
    /* The group has failed: a peer died (COLL_ERR_PEER), or a rank aborted
     * with this status.  text is one sentence.  Called at most once, on the
     * reactor's thread, without its lock. */
    void (*failed)(void *arg, int status, const char *text);

    /* Judge another rank's call.  Sets text to what this rank does ("in allreduce #12
     * (...)"); for VERDICT_NEVER, to the sentence with which the group fails.
     * is_gathering: this rank waits in coll__ctrl_allgather().  Called on any thread,
     * reactor's lock held; it must not take a lock or wait. */
    enum coll__verdict (*judge)(void *arg, const struct coll__ctrl_call *call,
                                int is_gathering, char text[COLL__TEXT_MAX]);
    void *arg;
};

#define COLL__NAMED 16

/* The answers about a call.  For a call to all ranks: how many ranks are late, how many
 * did not answer in time, and the first of both.  For a call to a peer: the same of that
 * peer alone. */
struct coll__ctrl_roll {
    int n_late, n_silent;
    int late[COLL__NAMED], silent[COLL__NAMED]; /* ascending */
    char text[COLL__WHERE_MAX]; /* what late[0], or the peer, does */
};

/* Connect the tree over the bootstrap's ranks.  Collective.
 *
 * Result:    *ctrl; the reactor is running.
 * Ownership: *ctrl is the caller's, to end by coll__ctrl_close(); boot is used
 *            during the call only; events is copied.
 * Errors:    COLL_ERR_BOOTSTRAP, COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged.
 */
int coll__ctrl_open(struct coll__boot *boot,
                    const struct coll__ctrl_events *events,
                    struct coll__ctrl **ctrl);

/* Make a secret that only the group's ranks can compute, for the use called `name`. */
void coll__ctrl_secret(const struct coll__ctrl *ctrl, const char *use,
                       unsigned char secret[COLL__SECRET_BYTES]);

#define COLL__TAG_BYTES 16

/* This rank's part of a tree (the whole) that is being split. */
struct coll__ctrl_part {
    int rank, size;
    const int *ranks; /* [size]: the part's ranks, by their numbers in the whole */
    unsigned char tag[COLL__TAG_BYTES]; /* random, the same on the part's ranks */
    int status; /* COLL_OK, or why this rank cannot join; all ranks are told */
    int is_rest; /* all that live of the whole, which may have failed: only a death of its
                  * own ranks fails the part */
    const struct coll__ctrl_events *events; /* of the part's tree */
};

/* Call begin before the first exchange by which the ranks agree on the parts, and end
 * after coll__ctrl_divide().  Other ranks may be faster and send news of a part that
 * this rank has not made yet.  Between the two calls such news is kept. */
void coll__ctrl_divide_begin(struct coll__ctrl *whole);
void coll__ctrl_divide_end(struct coll__ctrl *whole);

/* Connect a tree over the ranks of a part, by way of the whole.  No rendezvous is
 * needed, and a failure of the whole ends the wait at once.  Collective over the part.
 *
 * Result:    *ctrl, as coll__ctrl_open().  Until coll__ctrl_settle(), a failure of the
 *            whole fails the part too, and the part's errors name ranks by their numbers
 *            in the whole.
 * Ownership: part is used during the call only, its events are copied; whole must live
 *            until coll__ctrl_settle() or the end of *ctrl.
 * Errors:    COLL_ERR_PEER, or another failure of the whole; on the part's ranks also
 *            those of coll__ctrl_open().  Logged.
 */
int coll__ctrl_divide(struct coll__ctrl *whole,
                      const struct coll__ctrl_part *part, double timeout,
                      struct coll__ctrl **ctrl);

/* End the making of a part: its errors name ranks by the part's numbers from now on, and
 * the whole no longer watches over it.  If the part has failed already, nothing changes
 * and the status is returned, logged with the whole's numbers. */
int coll__ctrl_settle(struct coll__ctrl *ctrl);

/* Return the status with which the group has failed, or COLL_OK. */
int coll__ctrl_status(struct coll__ctrl *ctrl);

/* Tell hosts apart that have equal ids because they are clones of one snapshot.  Returns
 * 0 on the first such host, and if there are no others; a different number on each other
 * clone; the same on all ranks of a host. */
int coll__ctrl_clone(const struct coll__ctrl *ctrl);

/* Gather len bytes (any len, also 0) from each rank into out[size * len], on
 * every rank, in O(log size) rounds.  Collective; one caller at a time.
 *
 * Errors:    COLL_ERR_TIMEOUT naming the ranks not heard from, COLL_ERR_PEER,
 *            or the status of an abort, logged.
 */
int coll__ctrl_allgather(struct coll__ctrl *ctrl, const void *in, size_t len,
                         void *out, double timeout);

/* As coll__ctrl_allgather(), in two calls, so that the caller can do other work in
 * between.  in is copied; out[size * len] is filled in by the end.
 *
 * Shapes:    until: a time of coll__now() up to which this call waits; timeout: if that
 *            is the deadline, the timeout's seconds, for the error; else < 0.
 * Result:    COLL_OK, or COLL_IN_PROGRESS for a negative timeout.
 */
int coll__ctrl_exchange_start(struct coll__ctrl *ctrl, const void *in,
                              size_t len);
int coll__ctrl_exchange_end(struct coll__ctrl *ctrl, void *out, double until,
                            double timeout);

/* Agree with the other living ranks, whether the group has failed or not.  Collective.
 *
 * Shapes:    dead: coll__set_words(size) words of a set (lib/ctrl/agree.h).
 * Result:    *flags: the bits that all ranks passed which have not died meanwhile; dead:
 *            the ranks that had died, or left.  Every rank that returns gets the same.
 * Errors:    COLL_ERR_TIMEOUT: a rank has not called it in time.  The next call goes on
 *            with this agreement, also if it has been decided since.
 *            COLL_ERR_PEER: the others have taken this rank for dead.  Logged.
 * Cost:      four messages over each connection, and again for each death meanwhile.
 */
int coll__ctrl_agree(struct coll__ctrl *ctrl, uint64_t *flags, uint64_t *dead,
                     double timeout);

/* End the making of a group: agree that all ranks have come here.  Collective, once, before
 * other agreements.  A rank that gives the group up does not call it, but leaves.
 *
 * Result:    COLL_OK on every rank that returns, or on none, but for a rank whose wait has
 *            ended by the deadline: it counts as dead.
 * Errors:    The status with which the group has failed; COLL_ERR_PEER: a rank has died or
 *            left; COLL_ERR_TIMEOUT: a rank has neither come nor left in time.  Logged; now
 *            leave, too.
 * Cost:      an agreement.
 */
int coll__ctrl_confirm(struct coll__ctrl *ctrl, double timeout);

/* Return the number of the last agreement, the same on every rank that returned from it. */
uint32_t coll__ctrl_agreed(struct coll__ctrl *ctrl);

/* Get the ranks that are known to be dead on this rank.  Any thread. */
void coll__ctrl_dead(struct coll__ctrl *ctrl, uint64_t *dead);

/* Do without a rank in all agreements from now on, as if it had died. */
void coll__ctrl_exclude(struct coll__ctrl *ctrl, int rank);

/* Tell every other rank that the group has failed.  Does not wait, and does not call this
 * rank's own failed().  Any thread. */
void coll__ctrl_abort(struct coll__ctrl *ctrl, int status, const char *text);

/* Ask about a call that takes long: its peer, or all ranks.  The tree asks all ranks one
 * question at a time.  Returns at once; coll__ctrl_heard() has the answer.
 *
 * Shapes:    since: a question asked after that time, or an answer of all ranks heard
 *            after it, is good enough, even if another rank asked.
 * Result:    1, and *asked: when the peer was asked; `since` for a question to all.
 *            0: try again later, because another thread holds the lock, or the answer to
 *            a question to another peer is still awaited.
 *            If ranks disagree, the group fails.
 * Cost:      a question to all: at most four messages over each connection of the tree,
 *            even if all ranks ask; to a peer: there and back.
 */
int coll__ctrl_ask(struct coll__ctrl *ctrl, const struct coll__ctrl_call *call,
                   double since, double *asked);

/* Return 1 and set *roll if an answer about the call arrived after `since`; else 0. */
int coll__ctrl_heard(struct coll__ctrl *ctrl,
                     const struct coll__ctrl_call *call, double since,
                     struct coll__ctrl_roll *roll);

/* Set how long, in s, each level of the tree may take to answer; the default is 0.1 s.
 * Call it with the same value on all ranks, before any rank asks. */
void coll__ctrl_answer_within(struct coll__ctrl *ctrl, double level_time);

/* Return how long an answer may take, in s; after that a rank counts as silent. */
double coll__ctrl_answer_time(const struct coll__ctrl *ctrl);

/* Return the name of a rank's host, for error messages. */
const char *coll__ctrl_host(const struct coll__ctrl *ctrl, int rank);

/* Return how many messages about questions this rank has sent or forwarded. */
uint64_t coll__ctrl_n_questions(struct coll__ctrl *ctrl);

/* Leave.
 *
 * Shapes:    is_orderly != 0: wait (at most timeout seconds) until every rank leaves, so
 *            that none takes this rank for dead.  If 0, the other ranks see this rank's
 *            death.
 * Errors:    COLL_ERR_TIMEOUT, COLL_ERR_PEER, logged; ctrl is freed all the
 *            same.  The last communicator's close ends the reactor.
 */
int coll__ctrl_close(struct coll__ctrl *ctrl, int is_orderly, double timeout);

/* Leave in order, in two calls; every rank makes both.  While the end returns
 * COLL_IN_PROGRESS, like coll__ctrl_exchange_end(), ctrl lives on.  lingers: also wait
 * until the neighbours have closed; a process that is about to exit needs that. */
int coll__ctrl_close_start(struct coll__ctrl *ctrl);
int coll__ctrl_close_end(struct coll__ctrl *ctrl, double until, double timeout,
                         int lingers);

#endif
