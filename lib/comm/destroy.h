/* SPDX-License-Identifier: BSD-3-Clause */
/* destroy.h - the end of communicators: each by itself (destroy.c), and those for which no
 * call waits (deferred.c). */
#ifndef COLL_LIB_COMM_DESTROY_H
#define COLL_LIB_COMM_DESTROY_H

#include "lib/comm/comm.h"

/* ---- destroy.c ------------------------------------------------------------- */

/* Go on with one that has said farewell, until that time on the clock.
 *
 * Shapes:    since: when the caller began to wait for the other ranks, from which
 *            the communicator's timeout counts; INFINITY: it does not wait.
 *            is_last: the process may exit after it.
 * Result:    COLL_IN_PROGRESS, or what destroying it returns: it is gone then.
 */
int coll__destroy_go_on(struct coll_comm *comm, double until, double since,
                        int is_last);

/* ---- deferred.c ------------------------------------------------------------- */

/* One more communicator, or (-1) one less. */
void coll__deferred_count(struct coll_comm *comm, int change);

/* This one leaves: do all of the process now? */
int coll__deferred_is_last(struct coll_comm *comm);

/* Give up one that is under way to the thread that moves all such. */
void coll__deferred_put(struct coll_comm *comm);

/* Let each of them go on as far as it can. */
void coll__deferred_look(void);

/* End that thread; let each of them go on for a while, as coll__destroy_go_on() with
 * is_last, and return how many are left. */
void coll__deferred_take_over(void);
int coll__deferred_move(double since);

/* Return rc; but where that is COLL_OK, what one of them was found to have been
 * wrong in, logged, once. */
int coll__deferred_wrong(int rc);

#endif
