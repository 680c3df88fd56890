/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - messages between streams whose GPUs do not reach each other.
 *
 * Between two such ranks lie slots in pinned host memory at both ends.  To the streams
 * they are like any other (transports/stream.h).  The host carries what is between:
 *
 *     sender's stream       sender's host       receiver's host      receiver's stream
 *     wait empty                                recv into the slot
 *     copy into the slot                        when it is empty
 *     state = full     -->  send the slot  -->  state = full     --> wait full
 *                           state = empty                            copy or reduce
 *                                               empty again      <-- state = empty
 *
 * The host must know how long each message is, and of which call.  So a run announces
 * itself: its stream first waits until a word is free, and writes the run's number there.
 * The host takes the number, frees the word and appends the run's messages to those that
 * it expects, one queue for each peer and direction (a lane).  Nothing is counted from
 * run to run, so a run may be captured, and launched again and again.
 *
 * Ranks announce runs of collectives even if they have no message for the host in it.  So
 * the number of runs so far is the same on all ranks, and is the `seq` of the messages'
 * signatures: a rank that calls something else, or launches graphs in another order, is
 * told of as for any other message.
 */
#ifndef COLL_TRANSPORTS_PROXY_H
#define COLL_TRANSPORTS_PROXY_H

#include "lib/device/cuda.h"
#include "lib/device/cuda_stage.h"
#include "transports/stream.h"

#include <pthread.h>

struct coll__proxy_env {
    int rank, size;
    struct coll__stream_tp *inner; /* for ranks that it reaches; or NULL */
    struct coll__tp *const
        *to; /* [size]: the host's transports, which live longer */
    int channel, channel_aside; /* of theirs, for no other use */
    int n_slots; /* and slot: as in struct coll__stream_tp, at most inner's */
    size_t slot;
    int has_no_kernels;
};

struct proxy;

/* A message on its way through a lane, or a part of a step of the host's. */
struct proxy_piece {
    size_t len;
    int slot, what; /* what: its signature, or its work, in the run's list */
    int is_first;  /* the first of its call; of COLL__ASIDE only */
};

/* A run's pieces on one lane. */
struct proxy_list {
    struct proxy_lane *lane;
    int first, n;
};

struct coll__carried {
    struct proxy *tp;
    int id, is_aside;
    struct proxy_list *lists; /* [n_lists] */
    struct proxy_piece *pieces;
    struct coll__signature *sigs;
    struct coll__work *works;
    int n_lists, n_sigs, n_works;
    /* Its planner, each lane that carries it, each begin that has not been announced, and
     * graphs. */
    atomic_int n_users;
    atomic_int
        n_begun; /* begins that have not been announced; not those of graphs */
    struct coll__carried
        *next_gone; /* of those with n_gone; both under the lock */
    int n_gone;     /* graphs that are gone */
};

/* A run that a lane has to carry. */
struct proxy_todo {
    struct coll__carried *run;
    int list;
    uint64_t seq; /* of the run; 0: the lane counts calls */
};

/* A slot of a lane, for the owner. */
struct proxy_slot {
    struct coll__xfer xfer; /* its owner is the slot */
    struct proxy_lane *lane;
    int is_busy;
};

/* The messages to or from one rank, or the host's steps (proxy_work.c).  The caller's
 * thread makes it; then only the owner uses it, but for its memory. */
struct proxy_lane {
    struct proxy *tp;
    int peer, is_send, channel;
    int list; /* while a run is planned: its number among the run's, + 1; else 0 */
    int n_slots; /* of the host's steps one, since the stream waits for each */
    size_t slot_len;
    struct coll__stage *stage; /* a flag for each slot, then the slots */
    struct proxy_slot *slots;  /* [n_slots] */
    struct proxy_todo *queue;  /* [capacity], a ring */
    int first, n, capacity;
    int at; /* the next piece of the first todo */
    int n_busy;
    uint64_t n_calls;        /* of COLL__ASIDE, begun so far */
    struct proxy_lane *next; /* of the active ones */
    int is_active;
};

enum { PROXY_BLOCK = 256, PROXY_BLOCKS = 256 };

struct proxy {
    struct coll__stream_tp base;
    struct coll__stream_tp *inner; /* or NULL */
    struct coll__proxy_env env;
    struct coll__cuda_home home; /* from the first plan on */
    _Atomic(struct coll__stage *)
        words; /* whose memory has the announcing word */
    _Atomic(struct proxy_lane *) *lanes; /* [4 * size], proxy__lane_of() */
    /* Runs by their ids.  The caller's thread fills an entry, a run's last user empties
     * it. */
    _Atomic(struct coll__carried *) *runs[PROXY_BLOCKS];
    pthread_mutex_t lock;       /* of the ids, and of the next two */
    struct coll__carried *gone; /* whose graphs are gone, for the owner */
    int is_closed;
    int n_ids, *free_ids, n_free;
    atomic_int failure; /* what release() was told */
    atomic_int
        n_begun; /* begins that have not been announced; not those of graphs */
    atomic_int n_graphs; /* begins that graphs have */
    atomic_int n_users;  /* the communicator, and each run */
    /* The owner's. */
    struct proxy_lane *active;
    struct coll__ended ended;
    uint64_t n_runs; /* of collectives, announced so far */
};

/* Join the ranks that `inner` does not reach; if it reaches all, the host does only
 * steps.  Every rank calls it with the same numbers; nothing is exchanged.  Pinned memory
 * is taken when a run needs it.
 *
 * Ownership: *tp is the caller's, to be closed, and owns inner then.
 * Errors:    COLL_ERR_NOMEM; logged.
 */
int coll__proxy_open(const struct coll__proxy_env *env,
                     struct coll__stream_tp **tp);

/* ---- proxy_lane.c --------------------------------------------------------- */

/* Return the lane of a message, which plan() has made. */
struct proxy_lane *proxy__lane_of(const struct proxy *p,
                                  const struct coll__message *of, int is_send);

/* Return the slot of a message, and where it lies. */
static inline int proxy__slot_number(const struct proxy *p,
                                     const struct coll__message *of)
{
    return (of->n < COLL__ASIDE ? of->n : of->n - COLL__ASIDE) %
           p->base.n_slots;
}

void proxy__slot(const struct proxy *p, const struct coll__message *of,
                 int is_send, struct coll__slot *out);

/* Make it unless it is there.  A status, logged. */
int proxy__lane_need(struct proxy *p, const struct coll__message *of,
                     int is_send);

/* Append what a run has for the lane.  COLL_OK or COLL_ERR_NOMEM, logged. */
int proxy__lane_add(struct proxy_lane *lane, const struct proxy_todo *todo);

/* Start all transfers that can start; end those that have ended.  *moved as in
 * transports/stream.h.  A status. */
int proxy__lanes_move(struct proxy *p, struct coll__moved *moved);

/* Release the flags of the lanes; of those that send only with are_sends, since a stream
 * may fill their slots then, which the host's transports must not read any more. */
void proxy__lanes_release(const struct proxy *p, int are_sends);

/* Drop what they carry; free them, and put their memory back. */
void proxy__lanes_empty(struct proxy *p);
void proxy__lanes_free(struct proxy *p);

/* Return the bytes of their pinned memory. */
size_t proxy__lanes_bytes(const struct proxy *p);

/* As held() in transports/stream.h. */
uint64_t proxy__lanes_held(const struct proxy *p, int *peer);

/* ---- proxy_run.c ---------------------------------------------------------- */

int proxy__plan(struct coll__stream_tp *tp,
                const struct coll__planned *messages, int n,
                struct coll__carried **run);
int proxy__begin(struct coll__stream_tp *tp, struct coll__carried *run,
                 void *stream);
void proxy__forget(struct coll__carried *run);

/* ---- proxy_work.c --------------------------------------------------------- */

/* Return the name of the messages to oneself that steps of the host are. */
struct coll__message proxy__own(const struct proxy *p);

int proxy__work(struct coll__stream_tp *tp, const struct coll__work *work);

/* Do it, on len bytes; the result is in `half`. */
void proxy__do_work(const struct coll__work *work, unsigned char *half,
                    unsigned char *other, size_t len);

/* Take the runs that streams have announced, as owner.  A status, logged. */
int proxy__take(struct proxy *p, int *is_any);

/* Put the announcing word's memory back, as its next user expects it. */
void proxy__words_put(struct proxy *p);

/* Drop a user of the run, or of the transport's memory. */
void proxy__run_drop(struct coll__carried *run);
void proxy__drop(struct proxy *p);

/* Let all runs be announced for nothing from now on. */
void proxy__runs_release(const struct proxy *p);

/* Drop the runs that began and will not be announced any more. */
void proxy__runs_empty(struct proxy *p);

#endif
