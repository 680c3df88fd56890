/* SPDX-License-Identifier: BSD-3-Clause */
/* destroy.h - the end of communicators, at once (destroy.c) or deferred (deferred.c). */
#ifndef COLL_LIB_COMM_DESTROY_H
#define COLL_LIB_COMM_DESTROY_H

struct coll_comm;

/* ---- destroy.c ------------------------------------------------------------- */

/* Destroy the communicator: no operation may still run.  Check that all ranks called
 * the same operations, and leave.  As owner; returns a status, logged. */
int coll__comm_destroy(struct coll_comm *comm);

/* Free the communicator in a forked child; the other ranks do not notice. */
void coll__comm_abandon(struct coll_comm *comm);

/* Continue the destruction of a communicator that has sent its final check, at most
 * until coll__now() reaches `until`.
 *
 * Shapes:    since: when the caller began to wait for the other ranks; the
 *            communicator's timeout counts from there.  INFINITY: it does not wait.
 *            is_last: the process may exit after it.
 * Result: COLL_IN_PROGRESS; or the status of the destruction, and the communicator is
 *         freed.
 */
int coll__destroy_go_on(struct coll_comm *comm, double until, double since,
                        int is_last);

/* ---- deferred.c ------------------------------------------------------------- */

/* Count one communicator more, or (-1) one less. */
void coll__deferred_count(struct coll_comm *comm, int change);

/* This communicator is being destroyed.  Return 1 if every other one of the process is
 * too. */
int coll__deferred_is_last(struct coll_comm *comm);

/* Hand the destruction of the communicator to the thread that moves deferred ones. */
void coll__deferred_put(struct coll_comm *comm);

/* Move all deferred destructions as far as they go without waiting. */
void coll__deferred_look(void);

/* Stop that thread.  Move all deferred destructions for a while, as
 * coll__destroy_go_on() with is_last; returns how many are not finished. */
void coll__deferred_take_over(void);
int coll__deferred_move(double since);

/* Return rc, or, if rc is COLL_OK, the error that a deferred destruction has found,
 * logged, once. */
int coll__deferred_wrong(int rc);

#endif
