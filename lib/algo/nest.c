/* SPDX-License-Identifier: BSD-3-Clause */
/* nest.c - an algorithm within an algorithm: build the inner plan, then convert its
 * steps to the outer plan's ranks and places. */
#include "lib/algo/algo.h"
#include "lib/util/util.h"

struct coll__span coll__nested_span(const struct coll__frame *frame,
                                    size_t tmp_off,
                                    const struct coll__span *inner)
{
    struct coll__span base = {BUF_TMP, tmp_off, 0};

    if (inner->buf != BUF_TMP)
        base = inner->buf == BUF_IN ? frame->in : frame->out;
    return (struct coll__span){base.buf, base.off + inner->off, inner->len};
}

int coll__plan_nest(struct coll__plan *plan, const struct coll__algo *algo,
                    const struct coll__problem *inner,
                    const struct coll__frame *frame)
{
    struct coll__plan sub = {.algorithm = algo->name};
    size_t tmp_off = round_up(plan->tmp_len, CACHE_LINE);
    int rc = algo->build(inner, &sub);

    for (int i = 0; i < sub.n_steps && rc == COLL_OK; i++) {
        struct coll__step step = sub.steps[i];

        if (step.peer >= 0)
            step.peer = frame->ranks[step.peer];
        step.dst = coll__nested_span(frame, tmp_off, &step.dst);
        step.src = coll__nested_span(frame, tmp_off, &step.src);
        coll__plan_add(plan, &step);
    }
    coll__plan_fini(&sub);
    if (rc && plan->status == COLL_OK)
        plan->status = rc;
    return plan->status;
}
