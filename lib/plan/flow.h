/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - the elementary segments of a plan's buffers.
 *
 * All spans of a plan, laid over each other, cut each buffer into segments that
 * every span covers wholly or not at all.  Whoever asks what overlaps what
 * then works on ranges of segment numbers.
 */
#ifndef COLL_LIB_PLAN_FLOW_H
#define COLL_LIB_PLAN_FLOW_H

#include "lib/plan/plan.h"

struct coll__flow {
    size_t *cuts;     /* of all buffers in turn, each ascending */
    int first[N_BUFS + 1]; /* where each buffer's cuts begin in cuts */
};

/* Segments [from, to), numbered through all buffers. */
struct coll__segments {
    int from, to;
};

/* Cut the buffers of a plan.  Cost: O(n log n).  COLL_OK or COLL_ERR_NOMEM. */
int coll__flow_init(struct coll__flow *flow, const struct coll__plan *plan);

/* Return the segments of a span of the plan; none for an empty one. */
struct coll__segments coll__flow_find(const struct coll__flow *flow,
                                      const struct coll__span *span);

/* The number of segments: numbers are below it. */
static inline int coll__flow_size(const struct coll__flow *flow)
{
    return flow->first[N_BUFS];
}

void coll__flow_fini(struct coll__flow *flow);

#endif
