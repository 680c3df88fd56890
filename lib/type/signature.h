/* SPDX-License-Identifier: BSD-3-Clause */
/* signature.h - what identifies a call for comparison, in a few bytes: each message
 * carries it, and error sentences describe it. */
#ifndef COLL_LIB_TYPE_SIGNATURE_H
#define COLL_LIB_TYPE_SIGNATURE_H

#include "include/coll/coll.h"

#include <string.h>

/* The operations of a communicator are numbered in the order of their calls, in several
 * series.  HOST: operations on buffers of the host.  STREAM: operations that streams carry
 * out; their order among the host's differs between ranks.  ANY_ORDER: operations of
 * requests that ranks start in any order, in the order in which they begin.  COMPARED: with
 * COLL_CHECK calls for streams are compared when they are made, so these comparisons are
 * numbered among the host's.  TAGGED: messages with tags, whose numbers are of a pair of
 * ranks.  STARTED: starts in any order whose operations have not begun. */
enum coll__series {
    SERIES_HOST,
    SERIES_STREAM,
    SERIES_ANY_ORDER,
    N_HISTORIES,
    SERIES_COMPARED = N_HISTORIES,
    SERIES_TAGGED,
    SERIES_STARTED,
    N_SERIES
};

/* The signature of an operation; each of its messages carries it.  If two ranks'
 * signatures differ, their calls do not match.  algo_id: the algorithm id
 * (lib/comm/algorithm_id.h); 0 if it is not compared. */
struct coll__signature {
    uint64_t seq; /* the operation's number in its series, from 1 */
    uint8_t collective, type, op, series : 3, algo_id : 5;
    int32_t
        root; /* for allreduces fused into one, a digest of their lengths; for
                   * SERIES_COMPARED, coll__signature_places(); else 0 if there is no
                   * root */
    uint64_t
        count; /* the count; for allgatherv and reduce_scatterv a digest of all
                     * counts; 0 if ranks know only their own counts; or half of that and
                     * COLL__SIGNATURE_SCALED */
};

/* Return the series in which the call has its number. */
static inline enum coll__series
coll__numbered_in(const struct coll__signature *sig)
{
    return sig->series == SERIES_COMPARED ? SERIES_HOST
                                          : (enum coll__series)sig->series;
}

/* Both ranks stamp a point-to-point message as SEND: root is the receiver, seq counts the
 * messages from this sender to this receiver.  When a rank describes its own call, that
 * is SEND or RECV, and root is the peer. */
static inline int coll__is_p2p(enum coll_collective collective)
{
    return collective == COLL_SEND || collective == COLL_RECV;
}

/* Is it a message with a tag?  It has neither a plan nor an algorithm. */
static inline int coll__is_tagged(enum coll_collective collective)
{
    return collective == COLL_SEND_TAGGED || collective == COLL_RECV_TAGGED;
}

/* The seq of such a call, when a rank describes it: the tag in the upper half, and a
 * number that counts from 1.  root is the peer or COLL_ANY_RANK. */
static inline uint64_t coll__tagged_seq(int tag, uint32_t number)
{
    return (uint64_t)(uint32_t)tag << 32 | number;
}

static inline int coll__signature_tag(const struct coll__signature *sig)
{
    return (int)(uint32_t)(sig->seq >> 32);
}

/* The seq of SERIES_STARTED: the request's number among those that may be started in any
 * order, and how many times this rank has started it.  Both count from 1. */
static inline uint64_t coll__started_seq(uint32_t number, uint32_t n_starts)
{
    return (uint64_t)number << 32 | n_starts;
}

static inline uint32_t coll__started_number(uint64_t seq)
{
    return (uint32_t)(seq >> 32);
}

/* The collectives of all ranks are all but the sends and receives; those without a tag are
 * not the last of the enum, those with one are.  Return collective i of these, in the
 * order of the enum. */
#define COLL__N_OF_ALL ((int)COLL_N_COLLECTIVES - 4)

static inline enum coll_collective coll__of_all(int i)
{
    return (enum coll_collective)(i < (int)COLL_SEND ? i : i + 2);
}

/* Does a rank reduce the vectors of the ranks before it only? */
static inline int coll__is_prefix(enum coll_collective collective)
{
    return collective == COLL_SCAN || collective == COLL_EXSCAN;
}

/* Does each rank have its own counts, and know only these? */
static inline int coll__has_own_counts(enum coll_collective collective)
{
    return collective == COLL_ALLTOALLV || collective == COLL_GATHERV ||
           collective == COLL_SCATTERV;
}

/* Does the collective end on no rank before all have begun it? */
static inline int coll__is_joint(enum coll_collective collective, size_t count)
{
    switch (collective) {
    case COLL_BARRIER:
        return 1;
    case COLL_ALLREDUCE:
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
    case COLL_ALLTOALL:
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
        return count > 0;
    default:
        return 0;
    }
}

/* Does each byte go to one rank only, and does each rank send as much as it receives? */
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

/* sig.op of a caller's own operation.  Handles differ between processes, so ranks
 * compare only its kind. */
#define COLL__SIGNATURE_PREMUL 0x7e
#define COLL__SIGNATURE_USER 0x7f

/* This bit of sig.op: the result is multiplied by a postscale.  It is in the upper half of
 * the count field, as an f32; of the count or digest there is only the lower half. */
#define COLL__SIGNATURE_SCALED 0x80

static inline void coll__signature_set_scale(struct coll__signature *sig,
                                             float postscale)
{
    uint32_t bits;

    memcpy(&bits, &postscale, sizeof(bits));
    sig->count = (uint64_t)bits << 32 | (uint32_t)sig->count;
}

/* Return the postscale; 0: there is none. */
static inline float coll__signature_scale(const struct coll__signature *sig)
{
    uint32_t bits = (uint32_t)(sig->count >> 32);
    float postscale;

    if (!(sig->op & COLL__SIGNATURE_SCALED))
        return 0;
    memcpy(&postscale, &bits, sizeof(bits));
    return postscale;
}

/* Return the count, as far as the signature has it. */
static inline uint64_t coll__signature_count(const struct coll__signature *sig)
{
    return sig->op & COLL__SIGNATURE_SCALED ? (uint32_t)sig->count : sig->count;
}

/* The digest of registered buffers, coll__signature_places(), has 31 bits and takes the
 * place of the root.  If the operation has a root, the field holds the digest's upper
 * bits and, in its lower 16 bits, the root: the ranks are on one host, so 16 bits are
 * enough. */
#define COLL__ROOT_BITS 16

static inline int coll__signature_has_root(const struct coll__signature *sig)
{
    return sig->collective == COLL_BROADCAST;
}

/* Put the digest of registered buffers into the signature; 0: none is registered. */
static inline void coll__signature_set_places(struct coll__signature *sig,
                                              uint32_t places)
{
    if (!coll__signature_has_root(sig))
        sig->root |= (int32_t)places;
    else if (places)
        sig->root |=
            (int32_t)((places >> COLL__ROOT_BITS | 1) << COLL__ROOT_BITS);
}

static inline uint32_t coll__signature_places(const struct coll__signature *sig)
{
    uint32_t root = (uint32_t)sig->root;

    if (sig->series != SERIES_COMPARED)
        return 0;
    switch ((enum coll_collective)sig->collective) {
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

/* Return the root, or a message's other rank, without the digest. */
static inline int coll__signature_root(const struct coll__signature *sig)
{
    if (!coll__signature_places(sig))
        return sig->root;
    return coll__signature_has_root(sig)
               ? sig->root & ((1 << COLL__ROOT_BITS) - 1)
               : 0;
}

#define COLL__SIGNATURE_TEXT 160 /* bytes of its description at most */

/* Describe a signature in words: "allreduce #7 (100 f32, sum)", "send #2 to 3 (100
 * f32)", "barrier #3 on a stream". */
void coll__signature_describe(const struct coll__signature *sig, char *text,
                              size_t len);

/* Describe a call of this rank.  Its user tag follows unless it is 0: "barrier #3 [user
 * tag 42]". */
void coll__signature_describe_own(const struct coll__signature *sig,
                                  uint64_t user_tag, char *text, size_t len);

#endif
