/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.h - the path of operations that streams carry out by themselves, for
 * stream.c and staged.c. */
#ifndef COLL_LIB_STREAM_PROGRAMS_H
#define COLL_LIB_STREAM_PROGRAMS_H

#include "lib/comm/comm.h"
#include "transports/stream.h"

struct coll__batch;
struct coll__stream_call;
struct coll_mem_stats;

/* Is a stream still to come to what it carries out by itself, of no capture? */
int coll__queued_is_behind(const struct coll_comm *comm);

/* Add what it holds. */
void coll__queued_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats);

/* The communicator is going to leave: nobody looks at its streams any more. */
void coll__queued_leave(struct coll_comm *comm);

/* Free the programs and leave the other ranks' devices; streams have passed what
 * they were given, or the communicator has failed. */
void coll__queued_free(struct coll_comm *comm);

/* What was put into a stream has failed with rc: the communicator has, with the words
 * of whoever failed first.  Returns rc. */
int coll__queued_failed(struct coll_comm *comm, int rc);

/* Is an operation one kernel?  What all ranks know alike decides: kernels wait for
 * kernels. */
static inline int coll__is_one_kernel(const struct coll__stream_tp *tp,
                                      const struct coll__problem *pb)
{
    return tp->kernel.most && coll__problem_total(pb) <= tp->kernel.most;
}

/* ---- registered.c ------------------------------------------------------- */

/* Where a call's buffer lies among what is registered. */
struct coll__spot {
    const struct coll__stream_area *area; /* or NULL */
    size_t off;
};

/* Find those of a call's buffers that others are to read: their bits, 1 << BUF_..., in
 * *lying.  COLL_ERR_INVALID, logged: the memory was freed meanwhile. */
int coll__find_spots(const struct coll_comm *comm,
                     const struct coll__stream_call *call,
                     struct coll__spot spots[N_BUFS], unsigned *lying);

/* Say in which areas those are: numbers that are never used again; the others' stay. */
void coll__spots_areas(const struct coll__spot spots[N_BUFS], unsigned lying,
                       uint64_t areas[N_BUFS]);

/* Put the copy into the stream that has to be done before a program that takes the call
 * as `as`; often none.  A status, logged. */
int coll__queued_put_copy(const struct coll_comm *comm,
                          const struct coll__stream_call *call,
                          const struct coll__problem *as, void *stream);

/* Find where a call's buffers lie among what is registered, as a digest that all ranks
 * should have alike; 0: nowhere.  For COLL_CHECK.  A status, logged. */
int coll__queued_digest(const struct coll_comm *comm,
                        const struct coll__stream_call *call, uint32_t *digest);

/* Say it in words, of this rank's call. */
#define COLL__PLACES_TEXT 128
void coll__queued_places(const struct coll_comm *comm,
                         const struct coll__stream_call *call,
                         char text[COLL__PLACES_TEXT]);

/* ---- messages.c ---------------------------------------------------- */

/* Judge the sends and receives of a batch; say how many bytes of device memory they
 * need; put them into the stream.  Statuses, logged. */
int coll__messages_check(const struct coll_comm *comm,
                         const struct coll__batch *batch);
size_t coll__messages_bounce(const struct coll_comm *comm,
                             const struct coll__batch *batch);
int coll__messages_put(struct coll_comm *comm, const struct coll__batch *batch,
                       void *bounce);

#endif
