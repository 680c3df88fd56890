/* SPDX-License-Identifier: BSD-3-Clause */
/* doubling.h - what recursive doubling takes when some ranks fold first.
 *
 * Without a power of two the first ranks pair up (algo.h).  While they do, the
 * others begin: a short message leaves before its receiver is ready, so the
 * fold delays only those whose way to it is the longest.
 */
#ifndef COLL_LIB_ALGO_DOUBLING_H
#define COLL_LIB_ALGO_DOUBLING_H

#include "lib/algo/algo.h"

#define COLL__DOUBLINGS 31

struct coll__doubling {
    double fold, unfold; /* s, between the two of a pair: before and after */
    double round[COLL__DOUBLINGS]; /* s, of a message at distance 2^k */
    double work; /* s, on what has come, in each round */
    double held; /* s that what is sent must stay as it is */
};

/* Predicted time for p ranks, whose operands meet at distance 1, 2, 4, ... */
double coll__doubling_cost(int p, const struct coll__doubling *doubling);

#endif
