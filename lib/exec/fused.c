/* SPDX-License-Identifier: BSD-3-Clause */
/* fused.c - fused receive-send: a receive and the send of its result as one step.  The
 * plan says which steps may be fused (plan.h).
 *
 * The result goes to the next rank.  It is also stored in this rank's memory if another
 * step reads it there, or if it stays in OUT for the caller.  In a ring allreduce the
 * final sum, which comes later, overwrites the partial sums; so these go from slot to
 * slot only.
 */
#include "lib/exec/prog.h"

static int covers(const struct coll__span *a, const struct coll__span *b)
{
    return a->buf == b->buf && a->off <= b->off &&
           a->off + a->len >= b->off + b->len;
}

/* An ORDER step may stand for any read. */
static int reads(const struct coll__step *step, const struct coll__span *span)
{
    return step->kind == STEP_ORDER ||
           (coll__step_reads_src(step->kind) &&
            coll__spans_overlap(&step->src, span)) ||
           (coll__step_reads_dst(step->kind) &&
            coll__spans_overlap(&step->dst, span));
}

/* Is step i's result needed in memory?  Steps that read or overwrite it depend on i. */
static int is_looked_at(const struct coll__plan *plan, int i)
{
    const struct coll__span *left = &plan->steps[i].dst;
    int is_gone = left->buf == BUF_TMP;

    for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
        const struct coll__step *step = &plan->steps[plan->after[e]];

        if (plan->after[e] == i + 1)
            continue;
        if (reads(step, left))
            return 1;
        is_gone |=
            coll__step_writes_dst(step->kind) && covers(&step->dst, left);
    }
    return !is_gone;
}

enum coll__fused coll__prog_fused(const struct coll__prog *prog, int i)
{
    const struct coll__plan *plan = &prog->plan;

    if (!plan->steps[i].is_fused || coll__prog_reads_direct(prog, i + 1))
        return FUSED_NOT;
    return is_looked_at(plan, i) ? FUSED_KEPT : FUSED_GONE;
}
