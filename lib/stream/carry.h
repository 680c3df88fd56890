/* SPDX-License-Identifier: BSD-3-Clause */
/* carry.h - the host's part in operations of streams (transports/proxy.h): as the
 * communicator's owner, it carries messages between GPUs that do not reach each other, and
 * does the steps that no GPU does. */
#ifndef COLL_LIB_STREAM_CARRY_H
#define COLL_LIB_STREAM_CARRY_H

struct coll_comm;

struct coll__batch;

/* A batch is about to be enqueued, and has been: the owner looks for its messages and
 * steps from then on, since the enqueue may have to wait for them.  COLL_OK, or the
 * communicator's failure: then there is nothing to leave. */
int coll__carry_enter(struct coll_comm *comm, const struct coll__batch *batch);
void coll__carry_leave(struct coll_comm *comm);

/* As owner: carry what the streams have reached.  COLL_OK, or the communicator's
 * failure. */
int coll__carry_move(struct coll_comm *comm, int *moved);

/* As owner: look once more for what launched graphs have left to be carried. */
void coll__carry_drain(struct coll_comm *comm);

/* As owner of a communicator that has failed, or is drained and destroyed: nothing is
 * carried any more. */
void coll__carry_release(struct coll_comm *comm);

#endif
