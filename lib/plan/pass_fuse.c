/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_fuse.c - RECV into scratch, then REDUCE from it: one RECV_REDUCE.
 *
 * The pair becomes one step when the REDUCE reads exactly what the RECV wrote,
 * nobody else reads it, and no other message from that peer is taken between
 * the two, so that the order of messages stays.  The scratch is then free.
 *
 * The pair stays apart when a SEND still reads what the REDUCE writes: the
 * RECV_REDUCE would have to wait for that SEND, and two ranks that exchange
 * their vectors would wait for each other's receive (without buffering).
 */
#include "lib/plan/flow.h"
#include "lib/plan/plan.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

enum { NOBODY = -1, SEVERAL = -2 };

struct fuser {
    struct coll__flow flow;
    int *writer;   /* [segments]: the step that wrote it last, or -1 */
    int *is_sent;  /* [segments]: a SEND has read it since it was written */
    int *consumer; /* [n_steps]: of a RECV: NOBODY, SEVERAL, or a REDUCE */
};

static int same_span(const struct coll__span *a, const struct coll__span *b)
{
    return a->buf == b->buf && a->off == b->off && a->len == b->len;
}

/* Step i reads span: note it with each step that wrote there. */
static void note_read(struct fuser *f, const struct coll__plan *plan, int i,
                      const struct coll__span *span)
{
    struct coll__segments s = coll__flow_find(&f->flow, span);

    for (int g = s.from; g < s.to; g++) {
        int w = f->writer[g];

        if (w < 0 || f->consumer[w] == i)
            continue;
        if (f->consumer[w] == NOBODY && plan->steps[i].kind == STEP_REDUCE &&
            same_span(&plan->steps[i].src, &plan->steps[w].dst))
            f->consumer[w] = i;
        else
            f->consumer[w] = SEVERAL;
    }
}

/* Step i writes span: whoever wrote a part of it before is no longer whole. */
static void note_write(struct fuser *f, const struct coll__plan *plan, int i,
                       const struct coll__span *span)
{
    struct coll__segments s = coll__flow_find(&f->flow, span);

    for (int g = s.from; g < s.to; g++) {
        int w = f->writer[g];

        if (w >= 0 && f->consumer[w] == NOBODY &&
            !same_span(span, &plan->steps[w].dst))
            f->consumer[w] = SEVERAL;
        f->writer[g] = i;
        f->is_sent[g] = 0;
    }
}

/* Step i sends span: note it.  Or it reduces into what is being sent: the RECV
 * that feeds it must stay as it is. */
static void note_sends(struct fuser *f, const struct coll__plan *plan, int i)
{
    const struct coll__step *step = &plan->steps[i];
    struct coll__segments s;

    if (step->kind == STEP_SEND) {
        s = coll__flow_find(&f->flow, &step->src);
        for (int g = s.from; g < s.to; g++)
            f->is_sent[g] = 1;
    } else if (step->kind == STEP_REDUCE) {
        struct coll__segments from = coll__flow_find(&f->flow, &step->src);
        int is_sent = 0;

        s = coll__flow_find(&f->flow, &step->dst);
        for (int g = s.from; g < s.to; g++)
            is_sent |= f->is_sent[g];
        for (int g = from.from; g < from.to && is_sent; g++)
            if (f->writer[g] >= 0)
                f->consumer[f->writer[g]] = SEVERAL;
    }
}

static int can_fuse(const struct coll__plan *plan, const int *consumer, int i)
{
    const struct coll__step *recv = &plan->steps[i];

    if (recv->kind != STEP_RECV || recv->dst.buf != BUF_TMP || consumer[i] < 0)
        return 0;
    for (int j = i + 1; j < consumer[i]; j++)
        if (coll__step_is_recv(plan->steps[j].kind) &&
            plan->steps[j].peer == recv->peer)
            return 0;
    return 1;
}

/* An empty RECV has no segments; its REDUCE is the next step, if any. */
static void note_empty(struct fuser *f, const struct coll__plan *plan, int i)
{
    const struct coll__step *recv = &plan->steps[i], *next = recv + 1;

    if (recv->kind == STEP_RECV && !recv->dst.len && i + 1 < plan->n_steps &&
        next->kind == STEP_REDUCE && same_span(&next->src, &recv->dst))
        f->consumer[i] = i + 1;
}

static void rewrite(struct coll__plan *plan, const int *consumer)
{
    int kept = 0;

    for (int i = 0; i < plan->n_steps; i++)
        if (can_fuse(plan, consumer, i)) {
            plan->steps[consumer[i]].kind = STEP_RECV_REDUCE;
            plan->steps[consumer[i]].peer = plan->steps[i].peer;
            plan->steps[i].peer = -2; /* to be dropped */
        }
    plan->tmp_len = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];

        if (step->peer == -2)
            continue;
        if (step->dst.buf == BUF_TMP && coll__step_writes_dst(step->kind))
            plan->tmp_len =
                max_size(plan->tmp_len, step->dst.off + step->dst.len);
        plan->steps[kept++] = *step;
    }
    plan->n_steps = kept;
}

static int fuser_init(struct fuser *f, const struct coll__plan *plan)
{
    int n;

    if (coll__flow_init(&f->flow, plan))
        return COLL_ERR_NOMEM;
    n = coll__flow_size(&f->flow);
    f->writer = malloc(((size_t)n + 1) * sizeof(int));
    f->is_sent = calloc((size_t)n + 1, sizeof(int));
    f->consumer = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    if (!f->writer || !f->is_sent || !f->consumer) {
        log_error("plan", "no memory to fuse %d steps", plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n; i++)
        f->writer[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        f->consumer[i] = NOBODY;
    return COLL_OK;
}

int coll__pass_fuse(struct coll__plan *plan)
{
    struct fuser f = {0};
    int status = fuser_init(&f, plan);

    for (int i = 0; i < plan->n_steps && status == COLL_OK; i++) {
        const struct coll__step *step = &plan->steps[i];

        note_empty(&f, plan, i);
        if (coll__step_reads_src(step->kind))
            note_read(&f, plan, i, &step->src);
        if (coll__step_reads_dst(step->kind))
            note_read(&f, plan, i, &step->dst);
        note_sends(&f, plan, i);
        if (coll__step_writes_dst(step->kind))
            note_write(&f, plan, i, &step->dst);
    }
    if (status == COLL_OK)
        rewrite(plan, f.consumer);
    coll__flow_fini(&f.flow);
    free(f.writer);
    free(f.is_sent);
    free(f.consumer);
    return status;
}
