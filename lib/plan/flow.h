/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - the elementary segments of a plan's buffers.
 *
 * The spans of a plan, laid over each other, cut each buffer into segments.  A span
 * covers each segment wholly or not at all, so overlaps are found by comparing ranges
 * of segment numbers.  A buffer that no step writes (mostly IN) is not cut: its
 * readers conflict with nothing.
 */
#ifndef COLL_LIB_PLAN_FLOW_H
#define COLL_LIB_PLAN_FLOW_H

#include "lib/plan/plan.h"

/* Segments [from, to).  The numbers go on from one buffer to the next. */
struct coll__segments {
    int from, to;
};

/* The segments that a step writes and reads.  They are empty if the step does not
 * write (read), if the span is empty, or if no step writes the buffer. */
struct coll__touch {
    struct coll__segments dst, src;
};

/* The segments of a plan; {0} if the buffers are not cut yet.  Several passes over the
 * plan share it; each pass updates it or forgets it.  Dropped steps may leave cuts
 * that no span needs. */
struct coll__flow {
    struct coll__touch *touches; /* [n_steps]; NULL: not cut */
    int n_segments;              /* all numbers are below it */
    int is_written[N_BUFS];      /* per buffer: some step writes it, so it is cut */
};

/* Cut the buffers of a plan, unless they are cut already.
 *
 * Ownership: *flow is the caller's, to end by coll__flow_fini(), also after an
 *            error.
 * Errors:    COLL_ERR_NOMEM, logged.
 * Cost:      O(n) time and memory for n steps; O(1) if they are cut already.
 */
int coll__flow_need(struct coll__flow *flow, const struct coll__plan *plan);

/* Drop the steps whose peer is COLL__DROPPED from the plan and from its flow. */
void coll__flow_compact(struct coll__flow *flow, struct coll__plan *plan);

/* Do the same as coll__plan_link(), with a flow that the caller passes and keeps. */
int coll__flow_link(struct coll__flow *flow, struct coll__plan *plan);

/* Forget the segments, after a change of spans that they do not follow. */
void coll__flow_fini(struct coll__flow *flow);

#endif
