/* SPDX-License-Identifier: BSD-3-Clause */
/* captured.h - staged batches in a captured graph, which may be launched any number of
 * times.
 *
 * Each has a job and words of its own; no word keeps a count from launch to launch:
 *
 *     stream                          host
 *     wait idle = 1
 *     ready = ASKS                    sees it, when no other job is carried out
 *     wait done >= GOES               idle = 0, done = GOES
 *     copy piece 0 in, ready = FIRST  carries it out, done = FIRST
 *     ... as staged.c does, piece k having the number FIRST + k
 *     ready = ENDED                   done = 0, idle = 1
 *
 * The stream first waits until the host has finished the previous launch, so it never
 * reads that launch's words.  All captured batches of the communicator share the slots
 * of a second stage; a batch has them from GOES to ENDED.
 *
 * The communicator and the graph share the words and the slots; the last of the two to
 * end puts them back.  After the communicator has failed or was destroyed, idle and done
 * let a launch pass, and its results are void.
 */
#ifndef COLL_LIB_STREAM_CAPTURED_H
#define COLL_LIB_STREAM_CAPTURED_H

#include <stddef.h>

struct coll__batch;
struct coll__captured;
struct coll__job;
struct coll__streams;
struct coll_comm;

/* The captured batches of a communicator; as owner. */
struct coll__captures {
    struct coll__captured *first, **last; /* in the order of their capture */
    struct coll__captured *next;          /* behind the one that ran last */
    struct coll__lent *slots;             /* from the first one on */
};

/* Put a batch into the graph of its stream.  A status, logged. */
int coll__captured_put(struct coll_comm *comm, struct coll__batch *batch);

/* As owner, while no job runs: take up a batch whose stream asks.  Returns its job, or
 * NULL. */
struct coll__job *coll__captured_begin(struct coll_comm *comm);

/* As owner, when the host has done its part of the job: has the stream done its part,
 * too?  Then let the graph be launched again. */
int coll__captured_end(struct coll_comm *comm, struct coll__job *job);

/* As owner: let all launches pass from now on. */
void coll__captured_release(struct coll_comm *comm);

/* Return bytes of pinned memory. */
size_t coll__captured_bytes(const struct coll__streams *streams);

/* Free all that no graph needs; the graphs free the rest. */
void coll__captured_free(struct coll__streams *streams);

#endif
