/* SPDX-License-Identifier: BSD-3-Clause */
/* capture.c - streams that record instead of running: PG, "Stream Capture"; DA,
 * cuStreamBeginCapture and following. */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>

__thread CUstreamCaptureMode fake_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct capture *captures;
static uint64_t last_id;

struct capture *capture_list(void) { return captures; }

/* PG, "Invalidation": its streams answer so until the end. */
void capture_invalidate(struct capture *c) { c->is_invalid = 1; }

/* ---- unsafe calls -------------------------------------------------------- */

/* DA cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode: a GLOBAL capture
 * forbids them to its own thread and to all whose mode is GLOBAL; a THREAD_LOCAL one
 * to its own; a RELAXED thread may do all, so may one beside a RELAXED capture. */
static int forbids(const struct capture *c)
{
    int is_mine = pthread_equal(c->thread, pthread_self());

    if (c->is_invalid || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        fake_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return 0;
    return is_mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                       fake_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult capture_allows(void)
{
    CUresult rc = CUDA_SUCCESS;

    for (struct capture *c = captures; c; c = c->next)
        if (forbids(c)) {
            capture_invalidate(c);
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return rc;
}

CUresult capture_allows_context(struct context *ctx)
{
    CUresult rc = CUDA_SUCCESS;

    for (struct capture *c = captures; c; c = c->next)
        if (c->ctx == ctx) {
            capture_invalidate(c);
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return rc;
}

/* DA cuThreadExchangeStreamCaptureMode; a number beyond the three is taken (H100,
 * capture/exchange), as if it were the last. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = fake_capture_mode;
    CUresult rc = fake_enter("cuThreadExchangeStreamCaptureMode", 0, NULL);

    if (rc)
        return rc;
    if (!mode)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    fake_capture_mode = *mode > CU_STREAM_CAPTURE_MODE_RELAXED
                            ? CU_STREAM_CAPTURE_MODE_RELAXED
                            : *mode;
    *mode = old;
    return fake_leave(CUDA_SUCCESS);
}

/* ---- what becomes of calls ----------------------------------------------- */

CUresult capture_put(struct stream *s, struct work *w)
{
    struct node *node;

    if (s->capture->is_invalid) {
        work_fini(w);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    node = graph_add(s->capture->graph, w, s->frontier);
    s->frontier->n = 0;
    set_add(s->frontier, node->index);
    return CUDA_SUCCESS;
}

static void join(struct stream *s, struct capture *c)
{
    s->capture = c;
    s->frontier = set_new();
}

static void part(struct stream *s)
{
    s->capture = NULL;
    set_free(s->frontier);
    s->frontier = NULL;
}

void capture_record(struct stream *s, struct event *e)
{
    if (!e->frontier)
        e->frontier = set_new();
    e->frontier->n = 0;
    set_add_all(e->frontier, s->frontier);
    e->capture_id = s->capture->id;
    if (e->capture == s->capture)
        return;
    e->capture = s->capture;
    e->capture->events = realloc(
        e->capture->events, (size_t)(e->capture->n_events + 1) * sizeof(e));
    e->capture->events[e->capture->n_events++] = e;
}

static CUresult spoil(struct stream *s, CUresult rc)
{
    if (s->capture)
        capture_invalidate(s->capture);
    return rc;
}

/* DA cuStreamWaitEvent, CU_EVENT_WAIT_EXTERNAL: an event from outside is a node that
 * waits for what its last record is then. */
static CUresult wait_outside(struct stream *s, struct event *e, unsigned flags)
{
    struct work w = {.kind = W_WAIT, .outside = e};

    if (flags == CU_EVENT_WAIT_EXTERNAL)
        return capture_put(s, &w);
    if (!e->last && !e->shared) /* H100, capture/isolation: never recorded */
        return CUDA_SUCCESS;
    return spoil(s, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
}

/* PG, "Cross-stream Dependencies and Events": an event of a capture takes the stream
 * along; of two captures none can become one. */
CUresult capture_wait(struct stream *s, struct event *e, unsigned flags)
{
    if (s->capture && s->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!e->capture_id)
        return wait_outside(s, e, flags);
    if (!e->capture) /* its capture has ended: H100, capture/captured_event */
        return spoil(s, CUDA_ERROR_INVALID_VALUE);
    if (e->capture->is_invalid)
        return spoil(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (s->capture && s->capture != e->capture) {
        capture_invalidate(e->capture);
        return spoil(s, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (!s->capture)
        join(s, e->capture);
    set_add_all(s->frontier, e->frontier);
    return CUDA_SUCCESS;
}

/* ---- begun and ended ----------------------------------------------------- */

/* DA cuStreamBeginCapture: not the legacy stream; a stream that captures is
 * ILLEGAL_STATE (H100, capture/begin). */
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    struct capture *c;
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamBeginCapture", 0, stream, &s);

    if (rc)
        return rc;
    if (s->is_legacy)
        return fake_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (s->capture)
        return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    c = calloc(1, sizeof(*c));
    c->origin = s;
    c->ctx = s->ctx;
    c->graph = graph_new();
    c->mode = mode;
    c->thread = pthread_self();
    c->id = ++last_id;
    c->next = captures;
    captures = c;
    join(s, c);
    return fake_leave(CUDA_SUCCESS);
}

/* Everything that was captured is before what the origin would do next. */
static int is_joined(const struct capture *c)
{
    char *seen = calloc((size_t)c->graph->n + 1, 1);
    int n = 0;

    for (int i = 0; i < c->origin->frontier->n; i++)
        seen[c->origin->frontier->at[i]] = 1;
    for (int i = c->graph->n - 1; i >= 0; i--) {
        const struct set *before = c->graph->nodes[i]->before;

        for (int j = 0; seen[i] && j < before->n; j++)
            seen[before->at[j]] = 1;
        n += seen[i];
    }
    free(seen);
    return n == c->graph->n;
}

/* Its streams are out of it, its events stand for nothing. */
static void dissolve(struct capture *c)
{
    struct capture **at = &captures;

    for (struct stream *s = c->ctx->streams; s; s = s->next)
        if (s->capture == c)
            part(s);
    for (int i = 0; i < c->n_events; i++)
        if (c->events[i]->capture == c)
            c->events[i]->capture = NULL;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c->events);
    free(c);
}

void capture_abandon(struct stream *s)
{
    struct capture *c = s->capture;

    if (!c)
        return;
    capture_invalidate(c);
    if (c->origin == s) {
        graph_drop(c->graph);
        dissolve(c);
    } else {
        part(s);
    }
}

/* DA cuStreamEndCapture: by the stream that began, and, unless RELAXED, its thread.
 * The wrong thread ends it all the same (H100, capture/end_thread), the wrong stream
 * spoils it (capture/fork_join). */
static CUresult end(struct stream *s, struct graph **out)
{
    struct capture *c = s->capture;
    CUresult rc = CUDA_SUCCESS;

    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return spoil(s, c->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                      : CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(c->thread, pthread_self()))
        rc = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (c->is_invalid)
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(c))
        rc = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (rc)
        graph_drop(c->graph);
    *out = rc ? NULL : c->graph;
    dissolve(c);
    return rc;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    struct graph *g = NULL;
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamEndCapture", 0, stream, &s);

    if (rc)
        return rc;
    if (!graph)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = end(s, &g);
    *graph = (CUgraph)g;
    return fake_leave(rc);
}

/* ---- looked at ----------------------------------------------------------- */

static CUstreamCaptureStatus status_of(const struct stream *s)
{
    return !s->capture              ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Asking of the legacy stream beside a blocking one that captures is IMPLICIT, and
 * does no harm (DA cuStreamIsCapturing). */
static CUresult implicit(const struct stream *s)
{
    for (struct stream *t = s->ctx->streams; s->is_legacy && t; t = t->next)
        if (t->capture && t->is_blocking)
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamIsCapturing", 0, stream, &s);

    if (rc)
        return rc;
    if (!status)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = implicit(s);
    if (!rc)
        *status = status_of(s);
    return fake_leave(rc);
}

/* The nodes that the next call would depend on, for as long as the caller is there
 * to look at them: DA, "until the next API call". */
static CUresult look(CUstream stream, CUstreamCaptureStatus *status,
                     cuuint64_t *id, CUgraph *graph, const CUgraphNode **before,
                     size_t *n)
{
    static __thread CUgraphNode nodes[64];
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamGetCaptureInfo", 0, stream, &s);

    if (rc)
        return rc;
    rc = status ? implicit(s) : CUDA_ERROR_INVALID_VALUE;
    if (rc)
        return fake_leave(rc);
    *status = status_of(s);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return fake_leave(CUDA_SUCCESS);
    if (id)
        *id = s->capture->id;
    if (graph)
        *graph = (CUgraph)s->capture->graph;
    if (n)
        *n = (size_t)s->frontier->n;
    for (int i = 0; i < s->frontier->n && i < 64; i++)
        nodes[i] = (CUgraphNode)s->capture->graph->nodes[s->frontier->at[i]];
    if (before)
        *before = nodes;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **before,
                                const CUgraphEdgeData **edges, size_t *n)
{
    if (edges)
        *edges = NULL;
    return look(stream, status, id, graph, before, n);
}

/* As it was before 12.3. */
CUresult
v2_cuStreamGetCaptureInfo(CUstream, CUstreamCaptureStatus *, cuuint64_t *,
                          CUgraph *, const CUgraphNode **,
                          size_t *) __asm__("cuStreamGetCaptureInfo_v2");
CUresult v2_cuStreamGetCaptureInfo(CUstream stream,
                                   CUstreamCaptureStatus *status,
                                   cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **before, size_t *n)
{
    return look(stream, status, id, graph, before, n);
}
