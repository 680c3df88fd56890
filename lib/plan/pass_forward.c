/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_forward.c - read a COPY's source instead of its destination.
 *
 *   copy out from in                        send in
 *   send out                          ->    recv_reduce out with in
 *   recv_reduce out with out
 *
 * Suppose that a step reads bytes that a COPY wrote and that no step has written
 * since.  It reads the same bytes from the COPY's source instead, if no step after the
 * COPY writes that source.  This adds no wait, so two ranks cannot come to wait for
 * each other.  A COPY is dropped if no step reads its destination any more, and, in
 * OUT, if the caller does not read it.  A span that is only partly within a COPY's
 * destination stays as it is.
 */
#include "lib/plan/flow.h"
#include "lib/plan/plan.h"
#include "lib/trace/log.h"

#include <stdlib.h>

struct forwarder {
    struct coll__flow *flow;
    int *writer;   /* [segment]: the step that wrote it last, so far or in the whole
                    * plan; -1 none */
    char *is_kept; /* [step]: a COPY whose source is not written later */
    char *is_read; /* [step]: its destination is read */
    int is_recut;  /* a step reads a part of a source, at ends that are not cut yet */
};

static int forwarder_init(struct forwarder *f, const struct coll__plan *plan)
{
    size_t n = (size_t)plan->n_steps + 1;

    if (coll__flow_need(f->flow, plan))
        return COLL_ERR_NOMEM;
    f->writer = malloc(((size_t)f->flow->n_segments + 1) * sizeof(int));
    f->is_kept = calloc(n, 1);
    f->is_read = calloc(n, 1);
    if (!f->writer || !f->is_kept || !f->is_read) {
        log_error("plan", "no memory to forward the copies of %d steps",
                  plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    return COLL_OK;
}

static void forwarder_fini(struct forwarder *f)
{
    free(f->writer);
    free(f->is_kept);
    free(f->is_read);
}

static void forget_writers(struct forwarder *f)
{
    for (int g = 0; g < f->flow->n_segments; g++)
        f->writer[g] = -1;
}

static void note_write(struct forwarder *f, int i)
{
    struct coll__segments s = f->flow->touches[i].dst;

    for (int g = s.from; g < s.to; g++)
        f->writer[g] = i;
}

/* Find the COPYs whose source is not written after them. */
static void find_kept(struct forwarder *f, const struct coll__plan *plan)
{
    forget_writers(f);
    for (int i = 0; i < plan->n_steps; i++)
        note_write(f, i);
    for (int i = 0; i < plan->n_steps; i++) {
        struct coll__segments s = f->flow->touches[i].src;
        int last = -1;

        for (int g = s.from; g < s.to; g++)
            last = f->writer[g] > last ? f->writer[g] : last;
        f->is_kept[i] = plan->steps[i].kind == STEP_COPY && last < i;
    }
}

/* Return the step that wrote all of these segments last; -1 if there is none or
 * several. */
static int writer_of(const struct forwarder *f, struct coll__segments s)
{
    int writer = s.from < s.to ? f->writer[s.from] : -1;

    for (int g = s.from; g < s.to; g++)
        if (f->writer[g] != writer)
            return -1;
    return writer;
}

static void note_read(struct forwarder *f, struct coll__segments s)
{
    for (int g = s.from; g < s.to; g++)
        if (f->writer[g] >= 0)
            f->is_read[f->writer[g]] = 1;
}

/* Let step i read the source of the COPY that wrote src. */
static void forward(struct forwarder *f, struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];
    struct coll__segments s = f->flow->touches[i].src;
    int w = writer_of(f, s);
    const struct coll__step *copy = &plan->steps[w < 0 ? 0 : w];

    if (w < 0 || !f->is_kept[w] || step->kind == STEP_ORDER) {
        note_read(f, s);
        return;
    }
    if (coll__same_span(&step->src, &copy->dst) ||
        !f->flow->is_written[copy->src.buf])
        f->flow->touches[i].src = f->flow->touches[w].src;
    else
        f->is_recut = 1;
    step->src.buf = copy->src.buf;
    step->src.off += copy->src.off - copy->dst.off;
    f->is_kept[i] = step->kind == STEP_COPY;
}

/* The caller reads all of OUT at the end. */
static void note_results(struct forwarder *f, const struct coll__plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].dst.buf == BUF_OUT)
            note_read(f, f->flow->touches[i].dst);
}

static int has_copy(const struct coll__plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_COPY)
            return 1;
    return 0;
}

static void forward_all(struct forwarder *f, struct coll__plan *plan)
{
    find_kept(f, plan);
    forget_writers(f);
    for (int i = 0; i < plan->n_steps; i++) {
        enum coll__step_kind kind = plan->steps[i].kind;

        forward(f, plan, i);
        /* an ORDER does not change its dst: the step that wrote it before counts */
        if (coll__step_reads_dst(kind) || kind == STEP_ORDER)
            note_read(f, f->flow->touches[i].dst);
        note_write(f, i);
    }
    note_results(f, plan);
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_COPY && !f->is_read[i])
            plan->steps[i].peer = COLL__DROPPED;
    if (f->is_recut) {
        coll__flow_fini(f->flow);
        coll__plan_compact(plan);
    } else {
        coll__flow_compact(f->flow, plan);
    }
}

int coll__pass_forward(struct coll__plan *plan, struct coll__flow *flow)
{
    struct forwarder f = {.flow = flow};
    int rc;

    if (!has_copy(plan))
        return COLL_OK;
    rc = forwarder_init(&f, plan);
    if (rc == COLL_OK)
        forward_all(&f, plan);
    forwarder_fini(&f);
    return rc;
}
