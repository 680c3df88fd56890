/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_fuse.c - turn a RECV into scratch and the REDUCE from there into one
 * RECV_REDUCE.
 *
 * The pair becomes one step if the REDUCE reads exactly what the RECV wrote, no other
 * step reads it, and no other message from the same peer is received between the two
 * (the order of messages must stay).  The scratch is then free.
 *
 * The pair stays if an earlier SEND reads the bytes that the REDUCE writes: the
 * RECV_REDUCE would have to wait for that SEND.  Two ranks that exchange their vectors
 * would then each wait for the other's receive, if sends are not buffered.
 */
#include "lib/plan/flow.h"
#include "lib/plan/intern.h"
#include "lib/plan/plan.h"
#include "lib/trace/log.h"

#include <stdlib.h>

enum { NOBODY = -1, SEVERAL = -2 }; /* instead of a step */

struct fuser {
    struct coll__flow *flow;
    int *writer;   /* [segment]: the step that wrote it last, or -1 */
    int *is_sent;  /* [segment]: a SEND has read it since it was written */
    int *consumer; /* [step]: who reads a RECV's bytes: NOBODY, SEVERAL, or a REDUCE */
    int *next_recv; /* [step]: the next receive from the same peer */
};

/* Step i reads the segments: note it as a reader of each step that wrote there. */
static void note_read(struct fuser *f, const struct coll__plan *plan, int i,
                      struct coll__segments s)
{
    for (int g = s.from; g < s.to; g++) {
        int w = f->writer[g];

        if (w < 0 || f->consumer[w] == i)
            continue;
        if (f->consumer[w] == NOBODY && plan->steps[i].kind == STEP_REDUCE &&
            coll__same_span(&plan->steps[i].src, &plan->steps[w].dst))
            f->consumer[w] = i;
        else
            f->consumer[w] = SEVERAL;
    }
}

/* Step i writes its dst: the steps that wrote there before have lost part of their
 * bytes. */
static void note_write(struct fuser *f, const struct coll__plan *plan, int i)
{
    const struct coll__span *span = &plan->steps[i].dst;
    struct coll__segments s = f->flow->touches[i].dst;

    for (int g = s.from; g < s.to; g++) {
        int w = f->writer[g];

        if (w >= 0 && f->consumer[w] == NOBODY &&
            !coll__same_span(span, &plan->steps[w].dst))
            f->consumer[w] = SEVERAL;
        f->writer[g] = i;
        f->is_sent[g] = 0;
    }
}

/* Note what step i sends.  If it reduces into bytes that are being sent, the RECV
 * whose bytes it reads must stay. */
static void note_sends(struct fuser *f, const struct coll__plan *plan, int i)
{
    enum coll__step_kind kind = plan->steps[i].kind;
    struct coll__segments src = f->flow->touches[i].src;
    struct coll__segments dst = f->flow->touches[i].dst;
    int is_sent = 0;

    if (kind == STEP_SEND) {
        for (int g = src.from; g < src.to; g++)
            f->is_sent[g] = 1;
    } else if (kind == STEP_REDUCE) {
        for (int g = dst.from; g < dst.to; g++)
            is_sent |= f->is_sent[g];
        for (int g = src.from; g < src.to && is_sent; g++)
            if (f->writer[g] >= 0)
                f->consumer[f->writer[g]] = SEVERAL;
    }
}

static int can_fuse(const struct fuser *f, const struct coll__plan *plan, int i)
{
    const struct coll__step *recv = &plan->steps[i];

    return recv->kind == STEP_RECV && recv->dst.buf == BUF_TMP &&
           f->consumer[i] >= 0 && f->next_recv[i] >= f->consumer[i];
}

/* An empty RECV has no segments; its REDUCE is the next step, if there is one. */
static void note_empty(struct fuser *f, const struct coll__plan *plan, int i)
{
    const struct coll__step *recv = &plan->steps[i], *next = recv + 1;

    if (recv->kind == STEP_RECV && !recv->dst.len && i + 1 < plan->n_steps &&
        next->kind == STEP_REDUCE && coll__same_span(&next->src, &recv->dst))
        f->consumer[i] = i + 1;
}

/* Find the next message from the same peer for each receiving step. */
static int find_next_recvs(struct fuser *f, const struct coll__plan *plan)
{
    struct coll__numbers peers;
    int rc = coll__numbers_init(&peers, 0);
    int *next = malloc(((size_t)plan->n_steps + 1) * sizeof(int));

    for (int i = plan->n_steps - 1; i >= 0 && next && !rc; i--) {
        const struct coll__step *step = &plan->steps[i];
        int n_seen = peers.n, peer;

        if (!coll__step_is_recv(step->kind))
            continue;
        peer = coll__number(&peers, (uint64_t)step->peer);
        if (peer < 0) {
            rc = COLL_ERR_NOMEM;
            break;
        }
        f->next_recv[i] = peer < n_seen ? next[peer] : plan->n_steps;
        next[peer] = i;
    }
    coll__numbers_fini(&peers);
    if (!next)
        rc = COLL_ERR_NOMEM;
    free(next);
    return rc;
}

static void fuse_pairs(struct fuser *f, struct coll__plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (can_fuse(f, plan, i)) {
            struct coll__step *to = &plan->steps[f->consumer[i]];

            to->kind = STEP_RECV_REDUCE;
            to->peer = plan->steps[i].peer;
            to->src = to->dst;
            f->flow->touches[f->consumer[i]].src =
                f->flow->touches[f->consumer[i]].dst;
            plan->steps[i].peer = COLL__DROPPED;
        }
}

static int fuser_init(struct fuser *f, const struct coll__plan *plan)
{
    int n;

    if (coll__flow_need(f->flow, plan))
        return COLL_ERR_NOMEM;
    n = f->flow->n_segments;
    f->writer = malloc(((size_t)n + 1) * sizeof(int));
    f->is_sent = calloc((size_t)n + 1, sizeof(int));
    f->consumer = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    f->next_recv = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    if (!f->writer || !f->is_sent || !f->consumer || !f->next_recv ||
        find_next_recvs(f, plan)) {
        log_error("plan", "no memory to fuse %d steps", plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n; i++)
        f->writer[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        f->consumer[i] = NOBODY;
    return COLL_OK;
}

static void fuser_fini(struct fuser *f)
{
    free(f->writer);
    free(f->is_sent);
    free(f->consumer);
    free(f->next_recv);
}

static int has_reduce(const struct coll__plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_REDUCE)
            return 1;
    return 0;
}

int coll__pass_fuse(struct coll__plan *plan, struct coll__flow *flow)
{
    struct fuser f = {.flow = flow};
    int status;

    if (!has_reduce(plan))
        return COLL_OK;
    status = fuser_init(&f, plan);
    for (int i = 0; i < plan->n_steps && status == COLL_OK; i++) {
        const struct coll__step *step = &plan->steps[i];

        note_empty(&f, plan, i);
        note_read(&f, plan, i, flow->touches[i].src);
        if (coll__step_reads_dst(step->kind))
            note_read(&f, plan, i, flow->touches[i].dst);
        note_sends(&f, plan, i);
        note_write(&f, plan, i);
    }
    if (status == COLL_OK) {
        fuse_pairs(&f, plan);
        coll__flow_compact(flow, plan);
    }
    fuser_fini(&f);
    return status;
}
