/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - an operation in a few bytes: messages are stamped with it, error
 * sentences are made from it. */
#ifndef COLL_LIB_TYPE_HEAD_H
#define COLL_LIB_TYPE_HEAD_H

#include "include/coll/coll.h"

/* Operations of a communicator are numbered in the order of their calls: those of
 * buffers of the host; by themselves those that streams of a device come to, whose
 * order among the others no two ranks have alike; and those that streams carry out
 * alone.  Where calls for streams are compared (COLL_CHECK) that is done as they are
 * made, so these comparisons count among the host's. */
enum coll__series {
    SERIES_HOST,
    SERIES_STREAM,
    SERIES_QUEUED,
    N_HISTORIES,
    SERIES_COMPARED = N_HISTORIES,
    N_SERIES
};

/* Names the operation that a message belongs to; travels with each message.
 * Two ranks whose heads differ disagree about what they do. */
struct coll__head {
    uint64_t seq; /* the operation's number in its series, from 1 */
    uint8_t collective, type, op, series;
    int32_t root; /* of allreduces that travel as one a digest of their
                   * lengths, of calls that are compared one of where registered
                   * buffers lie, else 0 where there is no root */
    uint64_t count; /* a digest of all counts where all ranks know them (of
                     * allgatherv, reduce_scatterv), 0 where they do not */
};

/* A message between two ranks is stamped by both as SEND, root being the one
 * that receives, seq its number among those from the one to the other.  What a
 * rank says of itself is SEND or RECV, root being its peer. */
static inline int coll__is_p2p(enum coll_collective collective)
{
    return collective == COLL_SEND || collective == COLL_RECV;
}

/* Does it have counts of each rank; and does a rank know its own alone? */
static inline int coll__has_own_counts(enum coll_collective collective)
{
    return collective == COLL_ALLTOALLV || collective == COLL_GATHERV ||
           collective == COLL_SCATTERV;
}

/* Does each byte go to one rank, and each rank give and get as much? */
static inline int coll__is_exchange(enum coll_collective collective, int nranks)
{
    return collective == COLL_ALLTOALL || collective == COLL_ALLTOALLV ||
           (nranks == 2 && (collective == COLL_ALLGATHER ||
                            collective == COLL_ALLGATHERV));
}

static inline int coll__has_counts(enum coll_collective collective)
{
    return collective == COLL_ALLGATHERV ||
           collective == COLL_REDUCE_SCATTERV ||
           coll__has_own_counts(collective);
}

/* head.op of a caller's own operation: each process has its own handles, but
 * all ranks must have the same kind. */
#define COLL__HEAD_PREMUL 0xfe
#define COLL__HEAD_USER 0xff

#define COLL__HEAD_TEXT 128 /* bytes that it takes at most */

/* Describe a head in words: "allreduce #7 (100 f32, sum)", "send #2 to 3 (100
 * f32)", "barrier #3 on a stream". */
void coll__head_describe(const struct coll__head *head, char *text,
                         size_t len);

#endif
