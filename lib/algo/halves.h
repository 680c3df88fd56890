/* SPDX-License-Identifier: BSD-3-Clause */
/* halves.h - recursive halving in the canonical tree: the first phase of
 * Rabenseifner's algorithms.
 *
 * The vector is cut into m blocks, one for each operand of the fold (algo.h).
 * In the round of distance d, operands i and i + d exchange halves of the
 * blocks that both have the sums of; the lower one keeps the lower half.
 */
#ifndef COLL_LIB_ALGO_HALVES_H
#define COLL_LIB_ALGO_HALVES_H

#include "lib/algo/algo.h"

struct coll__halves {
    struct coll__fold fold; /* its operand: -1 for a rank that is folded away */
    int swapped; /* the operand that the upper rank of the pair holds; or -1 */
    struct coll__span sum; /* the whole vector */
    int from, to;          /* blocks [from, to) of it are complete */
};

/* Write the fold and the halving.
 *
 * Shapes:    sum: this rank's place for a vector; scratch begins behind it when
 *            it is scratch itself.  holder: a rank that must not be folded
 *            away, or -1.
 */
void coll__halves_reduce(const struct coll__problem *pb,
                         struct coll__plan *plan, struct coll__span sum,
                         int holder, struct coll__halves *h);

/* The rank that holds an operand. */
int coll__halves_rank(const struct coll__halves *h, int operand);

/* The blocks, next to the own ones, that the operand `distance` away has
 * complete when both have joined those of all greater distances. */
struct coll__span coll__halves_other(const struct coll__problem *pb,
                                     const struct coll__halves *h,
                                     int distance);

/* The own complete blocks; join the other ones to them. */
struct coll__span coll__halves_own(const struct coll__problem *pb,
                                   const struct coll__halves *h);
void coll__halves_join(struct coll__halves *h, int distance);

/* How far apart ranks are whose operands are `distance` apart: folded pairs lie
 * between them. */
int coll__halves_far(const struct coll__problem *pb, int distance);

/* Predicted time for all operands to exchange n bytes with those `distance`
 * away. */
double coll__halves_exchange(const struct coll__problem *pb, int distance,
                             double n);

/* Predicted time of the fold and the halving. */
double coll__halves_cost(const struct coll__problem *pb);

#endif
