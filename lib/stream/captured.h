/* SPDX-License-Identifier: BSD-3-Clause */
/* captured.h - batches of the staged path that are a part of a graph, which is launched
 * any number of times.
 *
 * Each has a job, and words of its own in which nothing counts from launch to launch:
 *
 *     stream                          host
 *     wait idle = 1
 *     ready = ASKS                    sees it, when no other job is carried out
 *     wait done >= GOES               idle = 0, done = GOES
 *     copy piece 0 in, ready = FIRST  carries it out, done = FIRST
 *     ... as staged.c does, piece k having the number FIRST + k
 *     ready = ENDED                   done = 0, idle = 1
 *
 * The stream waits first until the host has done with the launch before, so no word is
 * taken for one of this.  The slots are those of a second stage, which all captured
 * batches of the communicator share: it is theirs from GOES to ENDED.
 *
 * The communicator and the graph have the words and the slots in common: who is the last
 * to go puts them back.  Where the communicator has failed or gone, idle and done let a
 * launch pass, whose results are void.
 */
#ifndef COLL_LIB_STREAM_CAPTURED_H
#define COLL_LIB_STREAM_CAPTURED_H

#include <stddef.h>

struct coll__batch;
struct coll__captured;
struct coll__job;
struct coll__streams;
struct coll_comm;

/* Those of a communicator; as owner. */
struct coll__captures {
    struct coll__captured *first, **last; /* in the order of their capture */
    struct coll__captured *next;          /* behind the one that ran last */
    struct coll__lent *slots;             /* from the first one on */
};

/* Put a batch into the graph of its stream.  A status, logged. */
int coll__captured_put(struct coll_comm *comm, struct coll__batch *batch);

/* As owner, nothing is carried out: take up one whose stream asks.  Its job, or
 * NULL. */
struct coll__job *coll__captured_begin(struct coll_comm *comm);

/* As owner: the host has done its part of it; has its stream, too?  Then it may be
 * launched again. */
int coll__captured_end(struct coll_comm *comm, struct coll__job *job);

/* As owner: from now on all launches pass. */
void coll__captured_release(struct coll_comm *comm);

/* Bytes of pinned memory. */
size_t coll__captured_bytes(const struct coll__streams *streams);

/* Free all of it that no graph needs; the graphs free the rest. */
void coll__captured_free(struct coll__streams *streams);

#endif
