/* SPDX-License-Identifier: BSD-3-Clause */
/* halves.h - recursive halving in the canonical tree: the first phase of
 * Rabenseifner's algorithms.
 *
 * The vector is cut into m blocks, one for each operand of the fold (algo.h).  In the
 * round of distance d, operands i and i + d split the blocks whose sums both have:
 * each sends one half to the other, and the lower operand keeps the lower half.
 */
#ifndef COLL_LIB_ALGO_HALVES_H
#define COLL_LIB_ALGO_HALVES_H

#include "lib/algo/algo.h"
#include "lib/plan/view_rounds.h"

struct coll__halves {
    struct coll__fold fold; /* this rank's operand; -1: it is folded into another rank */
    int swapped; /* the operand that the upper rank of its pair holds, or -1 */
    struct coll__span sum; /* the whole vector */
    int from, to;          /* this rank has the full sums of blocks [from, to) */
};

/* Write the steps of the fold and the halving.
 *
 * Shapes:    sum: this rank's place for a vector; if it is in scratch, other scratch
 *            begins after it.  holder: a rank that must not be folded into another one,
 *            or -1.
 */
void coll__halves_reduce(const struct coll__problem *pb,
                         struct coll__plan *plan, struct coll__span sum,
                         int holder, struct coll__halves *h);

/* Return the rank that holds an operand. */
int coll__halves_rank(const struct coll__halves *h, int operand);

/* Return the complete blocks of the operand `distance` away.  They are next to this
 * rank's, when both ranks have received the blocks of all greater distances. */
struct coll__span coll__halves_other(const struct coll__problem *pb,
                                     const struct coll__halves *h,
                                     int distance);

/* Return this rank's complete blocks; add other blocks to them. */
struct coll__span coll__halves_own(const struct coll__problem *pb,
                                   const struct coll__halves *h);
void coll__halves_join(struct coll__halves *h, int distance);

/* Return the distance between the ranks of operands that are `distance` apart: pairs
 * count as two ranks. */
int coll__halves_far(const struct coll__problem *pb, int distance);

/* Predict the time if all operands exchange n bytes with those `distance` away. */
double coll__halves_exchange(const struct coll__problem *pb, int distance,
                             double n);

/* Say what a rank sends in round 0, the fold, or in a round of the halving; the root of a
 * reduce holds an operand.  *h: what the rank has afterwards.  Returns 0 if it sends
 * nothing. */
int coll__halves_send(const struct coll__problem *pb, int round, int rank,
                      struct coll__round_message *message,
                      struct coll__halves *h);

/* The same for the way back, on which a rank sends what it has after a round. */
int coll__halves_send_back(const struct coll__problem *pb, int round, int rank,
                           struct coll__round_message *message,
                           struct coll__halves *h);

/* Predict the time of the fold and the halving. */
double coll__halves_cost(const struct coll__problem *pb);

#endif
