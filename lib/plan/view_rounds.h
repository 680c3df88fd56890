/* SPDX-License-Identifier: BSD-3-Clause */
/* view_rounds.h - the predicted time of algorithms that go in rounds: in each round a rank
 * sends one message at most, of bytes that earlier rounds may have brought. */
#ifndef COLL_LIB_PLAN_VIEW_ROUNDS_H
#define COLL_LIB_PLAN_VIEW_ROUNDS_H

#include "lib/plan/plan.h"
#include "lib/plan/view_lanes.h"

/* What a rank sends in a round.  Each rank has a vector of blocks, in any order that
 * makes messages contiguous. */
struct coll__round_message {
    int to;
    int at,
        n_blocks; /* the blocks that it is made of, in the sender's vector */
    int put;      /* where they begin in the receiver's vector */
    double n;     /* bytes */
    int n_works; /* how often the receiver works on the bytes before they are there:
                       * reductions, copies */
    int is_ordered; /* a long message waits for the receiver's blocks; always if
                       * n_works */
    int pieces;     /* that it is made of; 0: pieces of a pipeline */
    double packed;  /* bytes that the sender copies before */
    double copied;  /* bytes that the receiver copies afterwards */
};

struct coll__rounds {
    const struct coll__problem *pb;
    int n;
    int n_blocks;  /* of a rank's vector */
    double block;  /* bytes of one, for its pieces */
    int is_held;   /* the sender changes the bytes in the next round */
    double packed; /* bytes that each rank copies at first, its whole vector */
    double copied; /* the same at last, in pieces of the pipeline */

    /* Say what a rank sends in a round; *message is zero before.  Returns 0 if it sends
     * nothing. */
    int (*send)(const struct coll__problem *pb, int round, int rank,
                struct coll__round_message *message);
};

/* Do groups differ, and are there few enough messages to follow them all?  Else closed forms
 * serve. */
int coll__rounds_are_followed(const struct coll__rounds *rounds);

/* Predict the time in s by following every message.
 *
 * Result:    HUGE_VAL if memory is short.
 * Cost:      O(nranks) a round, times the pieces of a message.
 */
double coll__rounds_cost(const struct coll__rounds *rounds);

#endif
