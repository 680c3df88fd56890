/* SPDX-License-Identifier: BSD-3-Clause */
/* doubling.h - the time of recursive doubling if some ranks fold first.
 *
 * Unless p is a power of two, the first ranks pair up (algo.h).  The others begin
 * meanwhile: a short message leaves before its receiver is ready.  So the fold delays
 * only ranks at the end of the longest chains of messages.
 */
#ifndef COLL_LIB_PLAN_DOUBLING_H
#define COLL_LIB_PLAN_DOUBLING_H

#include "lib/plan/view_cost.h"

#define COLL__DOUBLINGS 31

struct coll__doubling {
    double fold, unfold; /* s, of a message within a pair: before and after the rounds */
    double round[COLL__DOUBLINGS]; /* s, of a message at distance 2^k */
    double work; /* s, to reduce or copy the received bytes, in each round */
    double held; /* s, for which sent bytes must not change */
};

/* Predict the time for p ranks, whose operands meet at distances 1, 2, 4, ... */
double coll__doubling_cost(int p, const struct coll__doubling *doubling);

#endif
