/* SPDX-License-Identifier: BSD-3-Clause */
/* stall.h - what happens when a wait takes long: stall checks and stall reports. */
#ifndef COLL_LIB_COMM_STALL_H
#define COLL_LIB_COMM_STALL_H

#include "lib/comm/awaited.h"
#include "lib/ctrl/ctrl.h"

struct coll_comm;

/* Nothing moved in a wait for the call: is it too long, or is something wrong?  As
 * owner.  Never waits.
 *
 * Shapes:    running: the call that holds the wait up: `call` itself, or one that runs
 *            before it.  is_blocked: the caller waits until the call ends, and the
 *            timeout counts from the start of that wait (coll__wait_begin()); else it
 *            tests now and then, and the timeout counts from the last movement.
 * Result:    COLL_OK, or a status: the communicator has failed.
 */
int coll__stall_check(struct coll__call *call, const struct coll__call *running,
                      double timeout, int is_blocked);

/* A stream makes no progress in a collective.  Any thread, which need not own the
 * communicator.  The caller keeps a separate struct coll__patience, all 0 while the
 * stream makes progress.  COLL_OK, or the communicator's failure. */
int coll__stall_check_stream(struct coll__call *standing,
                             struct coll__patience *patience);

/* A call has ended after a warning that it waited for other ranks: report its end, too.
 * As owner. */
void coll__stall_end(struct coll__call *call);

/* Something of the communicator moved.  As owner. */
void coll__patience_end(struct coll_comm *comm);

/* Compare another rank's call with this rank's: the function `judge` of
 * coll__ctrl_events. */
enum coll__verdict coll__stall_judge(struct coll_comm *comm,
                                     const struct coll__ctrl_call *call,
                                     int is_gathering,
                                     char text[COLL__TEXT_MAX]);

#endif
