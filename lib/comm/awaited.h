/* SPDX-License-Identifier: BSD-3-Clause */
/* awaited.h - a call that somebody may wait for, and how long the wait has lasted. */
#ifndef COLL_LIB_COMM_AWAITED_H
#define COLL_LIB_COMM_AWAITED_H

#include "lib/type/signature.h"

struct coll_comm;

/* When a communicator last made progress, and which checks were made since then.  Times
 * of coll__now(); all 0 while there is progress. */
struct coll__patience {
    double since, looked, asked;
    double pause; /* s, before it asks again */
};

/* What was done about a call that waits for longer than COLL_STALL_WARN; times on the
 * clock. */
struct coll__stall {
    uint64_t seq; /* of the call */
    double asked; /* when ranks were asked who is missing */
    double said;  /* since when it had waited as that was reported, or 0 */
};

/* A call that somebody may wait for. */
struct coll__call {
    struct coll_comm *comm;
    struct coll__signature sig;
    uint64_t user_tag; /* the caller's, or 0 */
    int is_p2p;
    /* Times of coll__now(), 0 before: when the wait for the call began, when the stall
     * check last looked at it, and when its deadline was found to have passed. */
    double waits_since, considered, expired;
    struct coll__stall stall;
};

/* A wait for the call begins. */
static inline void coll__wait_begin(struct coll__call *call)
{
    call->waits_since = 0;
}

#endif
