/* SPDX-License-Identifier: BSD-3-Clause */
/* bounds.c - check which bytes each step of a plan touches.
 *
 * Each step is checked alone: the sizes of the buffers, whole elements, and what its
 * kind allows.  Reads need no limits here: bytes after the end of a buffer are never
 * written, and check.c refuses to read unwritten bytes.
 */
#include "lib/proof/bounds.h"
#include "lib/plan/plan.h"

#include <stdarg.h>

struct judge {
    const struct coll__problem *pb;
    const struct coll__plan *plan;
    size_t out_len;
    char *why;
    size_t why_len;
};

static int fault(const struct judge *j, int i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fault(const struct judge *j, int i, const char *format, ...)
{
    int n = snprintf(j->why, j->why_len, "rank %d step %d ", j->pb->rank, i);
    va_list args;

    va_start(args, format);
    if (n >= 0 && (size_t)n < j->why_len)
        vsnprintf(j->why + n, j->why_len - (size_t)n, format, args);
    va_end(args);
    return COLL_ERR_INVALID;
}

static int judge_peer(const struct judge *j, int i)
{
    const struct coll__step *step = &j->plan->steps[i];

    if (!coll__step_is_message(step->kind))
        return COLL_OK;
    if (step->peer < 0 || step->peer >= j->pb->nranks)
        return fault(j, i, "has no peer %d", step->peer);
    if (step->peer == j->pb->rank)
        return fault(j, i, "has the rank itself for a peer");
    return COLL_OK;
}

static int judge_writes(const struct judge *j, int i)
{
    const struct coll__span *dst = &j->plan->steps[i].dst;

    if (dst->buf == BUF_IN)
        return fault(j, i, "writes to IN");
    if (dst->buf == BUF_OUT && dst->len && dst->off + dst->len > j->out_len)
        return fault(j, i, "writes behind OUT, which has %zu bytes",
                     j->out_len);
    if (dst->buf == BUF_TMP && dst->len &&
        dst->off + dst->len > j->plan->tmp_len)
        return fault(j, i, "writes behind TMP, which has %zu bytes",
                     j->plan->tmp_len);
    return COLL_OK;
}

static int judge_both(const struct judge *j, int i)
{
    const struct coll__step *step = &j->plan->steps[i];

    if (step->src.len != step->dst.len)
        return fault(j, i, "has spans that differ in length");
    if (step->kind == STEP_RECV_REDUCE &&
        coll__same_span(&step->src, &step->dst))
        return COLL_OK;
    if (coll__spans_overlap(&step->src, &step->dst))
        return fault(j, i, "has spans that overlap");
    return COLL_OK;
}

static int is_whole(const struct judge *j, const struct coll__span *span)
{
    size_t size = coll_type_size(j->pb->type);

    return span->off % size == 0 && span->len % size == 0;
}

/* Steps that combine or divide elements work on whole elements. */
static int judge_elements(const struct judge *j, int i)
{
    const struct coll__step *step = &j->plan->steps[i];

    if (!coll__step_reads_dst(step->kind) && step->kind != STEP_RECV_REDUCE)
        return COLL_OK;
    if (!is_whole(j, &step->dst) ||
        (step->kind != STEP_SCALE && !is_whole(j, &step->src)))
        return fault(j, i, "does not work on whole elements of %zu bytes",
                     coll_type_size(j->pb->type));
    if (step->kind == STEP_RECV_REDUCE && j->pb->is_user_op)
        return fault(j, i, "is a recv_reduce, but a user's operation needs "
                     "recv and reduce apart");
    return COLL_OK;
}

int coll__plan_bounds(const struct coll__problem *pb,
                      const struct coll__plan *plan, char *why, size_t len)
{
    struct judge j = {pb, plan, coll__problem_len(pb, BUF_OUT), why, len};
    int rc = COLL_OK;

    for (int i = 0; i < plan->n_steps && rc == COLL_OK; i++) {
        enum coll__step_kind kind = plan->steps[i].kind;
        int writes = coll__step_writes_dst(kind) && kind != STEP_ORDER;

        rc = judge_peer(&j, i);
        if (rc == COLL_OK && writes)
            rc = judge_writes(&j, i);
        if (rc == COLL_OK && writes && coll__step_reads_src(kind))
            rc = judge_both(&j, i);
        if (rc == COLL_OK)
            rc = judge_elements(&j, i);
    }
    return rc;
}
