/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - the elementary segments of a plan's buffers.
 *
 * All spans of a plan, laid over each other, cut each buffer into segments that
 * every span covers wholly or not at all.  Whoever asks what overlaps what
 * then works on ranges of segment numbers.  A buffer that no step writes, as IN
 * mostly, is not cut: nobody can be in the way of those who read it.
 */
#ifndef COLL_LIB_PLAN_FLOW_H
#define COLL_LIB_PLAN_FLOW_H

#include "lib/plan/plan.h"

/* Segments [from, to), numbered through all buffers. */
struct coll__segments {
    int from, to;
};

/* What a step writes and reads; none where it does not, where the span is
 * empty, or where no step writes. */
struct coll__touch {
    struct coll__segments dst, src;
};

/* Of a plan, or {0}: not cut yet.  It serves several passes over the plan, each
 * of which keeps it true or forgets it.  Steps that are gone may leave cuts
 * that nobody needs. */
struct coll__flow {
    struct coll__touch *touches; /* [n_steps]; NULL: not cut */
    int n_segments;              /* numbers are below it */
    int is_written[N_BUFS];      /* is it cut? */
};

/* Cut the buffers of a plan, unless that is done.
 *
 * Ownership: *flow is the caller's, to end by coll__flow_fini(), also after an
 *            error.
 * Errors:    COLL_ERR_NOMEM, logged.
 * Cost:      O(n) time and memory for n steps; O(1) when done before.
 */
int coll__flow_need(struct coll__flow *flow, const struct coll__plan *plan);

/* Take out the steps whose peer is COLL__DROPPED, of the plan and its flow. */
void coll__flow_compact(struct coll__flow *flow, struct coll__plan *plan);

/* coll__plan_link() by a flow that is there, or is left for others. */
int coll__flow_link(struct coll__flow *flow, struct coll__plan *plan);

/* Forget it, as behind a change of spans that it cannot follow. */
void coll__flow_fini(struct coll__flow *flow);

#endif
