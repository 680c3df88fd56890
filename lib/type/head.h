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
 * Two ranks whose heads differ disagree about what they do.  way: which algorithm
 * carries it out (lib/comm/algorithm_id.h), 0 where that is not compared. */
struct coll__head {
    uint64_t seq; /* the operation's number in its series, from 1 */
    uint8_t collective, type, op, series : 3, way : 5;
    int32_t root;   /* of allreduces that travel as one a digest of their lengths, of
                   * compared calls one of where registered buffers lie
                   * (coll__head_places()), else 0 where there is no root */
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

/* Such a digest, of 31 bits, stands in place of the root; or above it, for which a rank
 * of one host leaves room. */
#define COLL__ROOT_BITS 16

static inline int coll__head_has_root(const struct coll__head *head)
{
    return head->collective == COLL_BROADCAST;
}

/* Put in a digest; 0: nothing is registered. */
static inline void coll__head_lies(struct coll__head *head, uint32_t places)
{
    if (!coll__head_has_root(head))
        head->root |= (int32_t)places;
    else if (places)
        head->root |=
            (int32_t)((places >> COLL__ROOT_BITS | 1) << COLL__ROOT_BITS);
}

static inline uint32_t coll__head_places(const struct coll__head *head)
{
    uint32_t root = (uint32_t)head->root;

    if (head->series != SERIES_COMPARED)
        return 0;
    switch ((enum coll_collective)head->collective) {
    case COLL_BROADCAST:
        return root >> COLL__ROOT_BITS;
    case COLL_ALLREDUCE:
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
        return root;
    default:
        return 0;
    }
}

/* The root, or a message's other rank, without such a digest. */
static inline int coll__head_root(const struct coll__head *head)
{
    if (!coll__head_places(head))
        return head->root;
    return coll__head_has_root(head) ? head->root & ((1 << COLL__ROOT_BITS) - 1)
                                     : 0;
}

#define COLL__HEAD_TEXT 128 /* bytes that it takes at most */

/* Describe a head in words: "allreduce #7 (100 f32, sum)", "send #2 to 3 (100
 * f32)", "barrier #3 on a stream". */
void coll__head_describe(const struct coll__head *head, char *text,
                         size_t len);

#endif
