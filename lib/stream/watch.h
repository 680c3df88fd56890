/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - who sees that a stream stands still in an operation of its own.
 *
 * What streams carry out alone takes no host: a rank that never calls would have the
 * others' streams wait for ever.  So the progress thread looks, now and then, how far
 * the streams have come (the stage's word `finished`, cuda_stage.h).  Where one does
 * not move, the other ranks are asked as about any wait (stall.c): ranks that disagree
 * are told soon, and when COLL_TIMEOUT has passed the communicator fails with the
 * ranks that have not called, which lets the streams go.
 *
 * A call costs a few stores for it, and nothing in the stream.
 *
 * Graphs are launched without the library, which sees of them no more than what lies
 * in the slots: that a rank has sent, and the peer does not take it.  That is wrong
 * unless a rank may be through with the operation then (broadcasts, ...); and a rank
 * whose graph has sent nothing yet is not noticed: empty slots look like those between
 * two launches.  To tell them apart each operation of a graph would have to write words
 * of the host when it begins and when it ends, three more entries in a stream (or
 * nodes beside the one of a kernel), as long as a small operation takes.
 */
#ifndef COLL_LIB_STREAM_WATCH_H
#define COLL_LIB_STREAM_WATCH_H

#include "lib/comm/stall.h"
#include "lib/device/cuda_stage.h"

/* Of a communicator, from its first such call on. */
struct coll__watch {
    struct coll_comm *comm;
    const struct coll__stage *stage;
    atomic_int
        has_loose_graph; /* of which a rank may be through before others */
    /* The last calls, sends and receives among the collectives, and the number of
     * each on the stage, which is stored before. */
    struct coll__history calls;
    _Atomic uint32_t number[COLL__HISTORY];
    struct coll__watch *next, **at; /* under the lock; NULL: not in the list */
    int is_taken;                   /* likewise: a thread looks */
    /* Of the thread that looks. */
    double looked;
    uint64_t first;  /* that has not finished, from 1 on */
    uint64_t digest; /* of what lay in the slots */
    int is_clean;    /* they were empty since the last call finished */
    struct coll__patience patience;
    struct coll__call standing; /* what is asked about */
};

/* Begin: *watch, to be ended.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__watch_begin(struct coll_comm *comm, const struct coll__stage *stage,
                      struct coll__watch **watch);

/* The communicator's next call, of that head but for its number, has finished when
 * the stage has come to `number`, which the messages of a group have in common. */
void coll__watch_note(struct coll__watch *watch, struct coll__head head,
                      uint32_t number);

/* The last n of them were never put there: they count as finished after `before`. */
void coll__watch_drop(struct coll__watch *watch, int n, uint32_t before);

/* A call has become part of a graph. */
void coll__watch_capture(struct coll__watch *watch,
                         enum coll_collective collective);

/* Is a stream still to come to what was noted? */
int coll__watch_is_behind(const struct coll__watch *watch);

/* Look no more; the watch stays until it is freed. */
void coll__watch_end(struct coll__watch *watch);

#endif
