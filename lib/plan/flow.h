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

/* Segments [from, to), numbered through all buffers. */
struct coll__segments {
    int from, to;
};

/* What a step writes and reads; none where it does not, or where the span is
 * empty. */
struct coll__touch {
    struct coll__segments dst, src;
};

struct coll__flow {
    struct coll__touch *touches; /* [n_steps] */
    int n_segments;              /* numbers are below it */
};

/* Cut the buffers of a plan.
 *
 * Ownership: *flow is the caller's, to end by coll__flow_fini(), also after an
 *            error.
 * Errors:    COLL_ERR_NOMEM, logged.
 * Cost:      O(n) time and memory for n steps.
 */
int coll__flow_init(struct coll__flow *flow, const struct coll__plan *plan);
void coll__flow_fini(struct coll__flow *flow);

#endif
