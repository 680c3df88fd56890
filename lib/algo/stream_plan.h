/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_plan.h - what a rank knows of the other ranks' plans. */
#ifndef COLL_LIB_ALGO_STREAM_PLAN_H
#define COLL_LIB_ALGO_STREAM_PLAN_H

#include "lib/algo/algo.h"

/* Return the problem of rank r, which works in place if this rank does. */
struct coll__problem coll__problem_of(const struct coll__problem *pb, int r);

/* Build the plan of a rank, with messages of at most slots->slot bytes.  Its steps are
 * not yet in slot order.  A status, logged. */
int coll__plan_build_fit(const struct coll__algo *algo,
                         const struct coll__problem *pb,
                         const struct coll__slots *slots,
                         struct coll__plan *plan);

#endif
