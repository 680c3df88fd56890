/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_plan.h - what a rank knows of the others' plans. */
#ifndef COLL_LIB_ALGO_STREAM_PLAN_H
#define COLL_LIB_ALGO_STREAM_PLAN_H

#include "lib/algo/algo.h"

/* The problem as rank r has it, that works in place if this one does. */
struct coll__problem coll__problem_of(const struct coll__problem *pb, int r);

/* Its plan, with messages of slot bytes at most, not in turns yet.  A status,
 * logged. */
int coll__plan_build_fit(const struct coll__algo *algo,
                         const struct coll__problem *pb,
                         const struct coll__room *room,
                         struct coll__plan *plan);

#endif
