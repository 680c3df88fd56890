/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.h - operations as plans in streams, for calls.c. */
#ifndef COLL_LIB_STREAM_PROGRAMS_H
#define COLL_LIB_STREAM_PROGRAMS_H

#include "lib/plan/plan.h"
#include "transports/stream.h"

struct coll__batch;
struct coll__stream_call;
struct coll_comm;
struct coll_mem_stats;

/* Make the state for programs.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__programs_open(struct coll_comm *comm);

/* Set the stream transport, or NULL.  Another thread may fail the communicator meanwhile,
 * and then its streams are released. */
void coll__programs_set(struct coll_comm *comm, struct coll__stream_tp *tp);

/* Enqueue a batch; the stream's context is current.  COLL_OK and the ticket, or a status,
 * logged: nothing was enqueued, or the communicator failed. */
int coll__programs_enqueue(struct coll_comm *comm, struct coll__batch *batch);

/* Has the stream passed the batch with this ticket?  Any thread. */
int coll__programs_has_finished(const struct coll_comm *comm, uint32_t ticket);

/* Has a stream still to pass an operation that it carries out by itself?  Captured ones
 * do not count. */
int coll__programs_is_behind(const struct coll_comm *comm);

/* Add what it holds. */
void coll__programs_bytes(const struct coll_comm *comm,
                          struct coll_mem_stats *stats);

/* The communicator is about to be destroyed: stop watching its streams. */
void coll__programs_leave(struct coll_comm *comm);

/* Free the programs and unmap the other ranks' devices; the streams have passed all
 * operations, or the communicator has failed. */
void coll__programs_free(struct coll_comm *comm);

/* An enqueued operation has failed with rc: fail the communicator, with the message of
 * the rank that failed first.  Returns rc. */
int coll__programs_failed(struct coll_comm *comm, int rc);

/* Is an operation one kernel?  Kernels wait for the other ranks' kernels, so only numbers
 * that are equal on all ranks decide. */
static inline int coll__is_one_kernel(const struct coll__stream_tp *tp,
                                      const struct coll__problem *pb)
{
    return tp->kernel.most && !pb->is_user_op && !pb->is_hosts_op &&
           coll__problem_total(pb) <= tp->kernel.most;
}

/* ---- registered.c ------------------------------------------------------- */

/* The place of a call's buffer in registered memory. */
struct coll__registered {
    const struct coll__registration *reg; /* or NULL */
    size_t off;
};

/* Find the buffers of a call that other ranks read in place: *direct has a bit
 * 1 << BUF_... for each.  COLL_ERR_INVALID, logged: registered memory was freed. */
int coll__find_registered(const struct coll_comm *comm,
                          const struct coll__stream_call *call,
                          struct coll__registered found[N_BUFS],
                          unsigned *direct);

/* Write the numbers of these buffers' registrations; other entries stay as they are.  A
 * number is never used again. */
void coll__registered_numbers(const struct coll__registered found[N_BUFS],
                              unsigned direct, uint64_t regs[N_BUFS]);

/* A program may carry out the call as the problem `as`, which may be in place when the
 * call is not: enqueue the copy of the input that is needed first, if any.  A status,
 * logged. */
int coll__programs_put_copy(const struct coll_comm *comm,
                            const struct coll__stream_call *call,
                            const struct coll__problem *as, void *stream);

/* Compute a digest of the places of a call's buffers in registered memory, which should
 * be equal on all ranks; 0: no buffer is registered.  For COLL_CHECK.  A status,
 * logged. */
int coll__programs_digest(const struct coll_comm *comm,
                          const struct coll__stream_call *call,
                          uint32_t *digest);

/* Describe these places, of this rank's call. */
#define COLL__PLACES_TEXT 128
void coll__programs_places(const struct coll_comm *comm,
                           const struct coll__stream_call *call,
                           char text[COLL__PLACES_TEXT]);

/* ---- messages.c ---------------------------------------------------- */

/* The last batch of which the host carries messages, planned; all 0 at first. */
struct coll__kept_run {
    struct coll__planned *planned; /* [n] */
    int n;
    struct coll__carried *run; /* or NULL */
    void (*forget)(struct coll__carried *run);
};

/* check: check the sends and receives of a batch.  put: enqueue them; *kept becomes the
 * batch's.  Both return a status, logged. */
int coll__messages_check(const struct coll_comm *comm,
                         const struct coll__batch *batch);
int coll__messages_put(struct coll_comm *comm, const struct coll__batch *batch,
                       struct coll__kept_run *kept);
void coll__messages_forget(struct coll__kept_run *kept);

#endif
