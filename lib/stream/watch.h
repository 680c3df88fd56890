/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - notices a stream that stands still in an operation that it carries out alone.
 *
 * Such an operation needs no host, so if a rank never calls, the other ranks' streams
 * would wait for ever.  So the progress thread checks now and then how far the streams
 * have come (the stage's word `finished`, cuda_stage.h).  If a stream does not move, the
 * other ranks are asked as for any wait (stall.c).  Ranks that disagree are reported
 * soon.  After COLL_TIMEOUT the communicator fails and names the ranks that have not
 * called; this releases the streams.
 *
 * A call costs a few stores, and nothing in the stream.
 *
 * Graphs are launched without the library, which sees only their slots: a rank has sent,
 * and the peer does not take it.  That is an error, unless the operation lets a rank
 * finish before its peers (a broadcast, ...).  A graph that has sent nothing yet is
 * not noticed: its slots are as empty as between two launches.  To tell the two apart,
 * each operation would have to write host words when it begins and ends: three more
 * entries in a stream (or graph nodes), as long as a small operation takes.
 */
#ifndef COLL_LIB_STREAM_WATCH_H
#define COLL_LIB_STREAM_WATCH_H

#include "include/coll/coll.h"
#include "lib/comm/awaited.h"
#include "lib/trace/history.h"

#include <stdatomic.h>

struct coll__stage;
struct coll_comm;

/* The watch of a communicator, from its first such call on. */
struct coll__watch {
    struct coll_comm *comm;
    const struct coll__stage *stage;
    atomic_int
        has_loose_graph; /* has a graph in which a rank may finish before others */
    /* The last calls (collectives, sends and receives), and the stage number of each,
     * which is stored first. */
    struct coll__history calls;
    _Atomic uint32_t number[COLL__HISTORY];
    struct coll__watch *next, **at; /* under the lock; NULL: not in the list */
    int is_taken;                   /* likewise: a thread checks it */
    /* Only for the thread that checks. */
    double looked;
    uint64_t first;  /* the first unfinished call, from 1 on */
    uint64_t digest; /* of the slots' content */
    int is_clean;    /* slots were empty since the last call finished */
    struct coll__patience patience;
    struct coll__call standing; /* the call to ask about */
};

/* Begin a watch; the caller ends *watch.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__watch_begin(struct coll_comm *comm, const struct coll__stage *stage,
                      struct coll__watch **watch);

/* Note the communicator's next call.  The call is finished when the stage counter
 * reaches `number`; all messages of a group share one number.  This function sets the
 * call's sequence number, so sig.seq is ignored. */
void coll__watch_note(struct coll__watch *watch, struct coll__signature sig,
                      uint64_t user_tag, uint32_t number);

/* The last n noted calls were not enqueued: they count as finished after `before`. */
void coll__watch_drop(struct coll__watch *watch, int n, uint32_t before);

/* Note that a call has become part of a graph. */
void coll__watch_capture(struct coll__watch *watch,
                         enum coll_collective collective);

/* Has a stream still to pass a noted call? */
int coll__watch_is_behind(const struct coll__watch *watch);

/* Stop checking; the watch stays until it is freed. */
void coll__watch_end(struct coll__watch *watch);

#endif
