/* SPDX-License-Identifier: BSD-3-Clause */
/* graph.c - graphs, executable ones and their launches: PG, "CUDA Graphs"; DA, "Graph
 * Management". */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>

/* ---- sets ---------------------------------------------------------------- */

struct set *set_new(void) { return calloc(1, sizeof(struct set)); }

void set_add(struct set *s, int i)
{
    for (int j = 0; j < s->n; j++)
        if (s->at[j] == i)
            return;
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 4;
        s->at = realloc(s->at, (size_t)s->room * sizeof(*s->at));
    }
    s->at[s->n++] = i;
}

void set_add_all(struct set *s, const struct set *other)
{
    for (int i = 0; i < other->n; i++)
        set_add(s, other->at[i]);
}

void set_free(struct set *s)
{
    if (s)
        free(s->at);
    free(s);
}

/* ---- graphs -------------------------------------------------------------- */

struct graph *graph_new(void)
{
    return object_new(GRAPH, sizeof(struct graph));
}

struct node *graph_add(struct graph *g, struct work *w,
                       const struct set *before)
{
    struct node *node = g->is_plain ? calloc(1, sizeof(*node))
                                    : object_new(NODE, sizeof(*node));

    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->nodes = realloc(g->nodes, (size_t)g->room * sizeof(*g->nodes));
    }
    node->graph = g;
    node->index = g->n;
    node->work = *w;
    node->before = set_new();
    set_add_all(node->before, before);
    g->nodes[g->n++] = node;
    return node;
}

struct graph *graph_copy(const struct graph *g)
{
    struct graph *copy = calloc(1, sizeof(*copy));

    copy->is_plain = 1;
    for (int i = 0; i < g->n; i++) {
        struct work w;

        work_copy(&w, &g->nodes[i]->work);
        graph_add(copy, &w, g->nodes[i]->before);
    }
    for (struct held_object *h = g->held; h; h = h->next) {
        held_more(h->object, h->n);
        held_add(copy, h->object, h->n);
    }
    return copy;
}

void graph_drop(struct graph *g)
{
    g->object.is_alive = 0;
    for (int i = 0; i < g->n; i++) {
        g->nodes[i]->object.is_alive = 0;
        work_fini(&g->nodes[i]->work);
        set_free(g->nodes[i]->before);
        g->nodes[i]->before = NULL;
        if (g->is_plain)
            free(g->nodes[i]);
    }
    free(g->nodes);
    g->nodes = NULL;
    g->n = 0;
    while (g->held) {
        struct held_object *h = g->held;

        g->held = h->next;
        held_let_go(h->object, h->n);
        free(h);
    }
    if (g->is_plain)
        free(g);
}

/* ---- launches ------------------------------------------------------------ */

enum state { BEFORE, UNDER_WAY, DONE };

struct progress {
    enum state state;
    unsigned next; /* of its memory operations */
};

static int is_ready(const struct graph *g, const struct progress *p, int i)
{
    const struct set *before = g->nodes[i]->before;

    for (int j = 0; j < before->n; j++)
        if (p[before->at[j]].state != DONE)
            return 0;
    return 1;
}

/* Who waits for the event, a stream or a thread, goes on. */
static void pass_record(struct record *r)
{
    pthread_mutex_lock(fake_lock());
    record_end(r);
    queue_kick();
    fake_changed();
    pthread_mutex_unlock(fake_lock());
}

/* One node as far as it goes; a wait that does not pass lets others go first. */
static int go_on(struct node *node, struct progress *p, struct stream *s,
                 CUresult *rc)
{
    struct work *w = &node->work;

    if (w->kind == W_MEMOPS)
        return memops_step(w, &p->next, s, rc);
    if (w->kind == W_WAIT && w->record && !record_is_done(w->record))
        return 0;
    if (w->kind == W_WAIT)
        return 1;
    if (w->kind == W_RECORD) {
        pass_record(w->record);
        return 1;
    }
    *rc = work_run(w, s);
    return 1;
}

/* Those whose turn it is, from a random one on: PG, "CUDA Graphs", promises the order
 * of dependencies alone.  Those before `from` are done. */
CUresult graph_run(struct graph *g, struct stream *s)
{
    struct progress *p = calloc((size_t)g->n + 1, sizeof(*p));
    unsigned n_naps = 0;
    CUresult rc = CUDA_SUCCESS;
    int from = 0;

    while (from < g->n && !rc && !fake_error()) {
        int n_done = 0, window = g->n - from < 64 ? g->n - from : 64;
        int skip = (int)stream_dice(s, (unsigned)window);

        for (int k = 0; k < window && !rc; k++) {
            int i = from + (k + skip) % window;

            if (p[i].state == DONE || !is_ready(g, p, i))
                continue;
            if (go_on(g->nodes[i], &p[i], s, &rc)) {
                p[i].state = DONE;
                n_done++;
            }
        }
        while (from < g->n && p[from].state == DONE)
            from++;
        if (n_done)
            n_naps = 0;
        else
            memops_nap(&n_naps);
    }
    free(p);
    return rc;
}

static void exec_let_go(struct exec *e)
{
    if (--e->n_users == 0)
        graph_drop(e->graph);
}

void run_end(struct run *run)
{
    run->exec->n_done = run->number;
    graph_drop(run->graph);
    exec_let_go(run->exec);
    free(run);
}

/* Events from outside are waited for as they are now, and recorded anew. */
static void look_outside(struct graph *g)
{
    for (int i = 0; i < g->n; i++) {
        struct work *w = &g->nodes[i]->work;

        if (w->kind != W_WAIT && w->kind != W_RECORD)
            continue;
        if (!w->outside->object.is_alive)
            fake_misuse("cuGraphLaunch", "event", w->outside);
        w->record = w->kind == W_WAIT ? event_last(w->outside)
                                      : event_record(w->outside);
    }
}

/* DA cuGraphLaunch: behind the launch before it.  In a capture it is refused (H100,
 * graph/in_capture; documented as a child graph). */
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    struct work w = {.kind = W_LAUNCH};
    struct stream *s;
    struct exec *e;
    CUresult rc = fake_enter_stream("cuGraphLaunch", 0, stream, &s);

    if (rc)
        return rc;
    e = object_of(handle, EXEC, "cuGraphLaunch");
    rc = stream_check(s);
    if (!rc && s->capture) {
        rc = s->capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                    : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        capture_invalidate(s->capture);
    }
    if (rc)
        return fake_leave(rc);
    w.run = calloc(1, sizeof(*w.run));
    w.run->exec = e;
    w.run->number = ++e->n_launched;
    w.run->graph = graph_copy(e->graph);
    look_outside(w.run->graph);
    e->n_users++;
    return fake_leave(stream_put(s, &w));
}

/* ---- entries ------------------------------------------------------------- */

/* An unsafe call (H100, unsafe/global_self). */
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle,
                                     unsigned long long flags)
{
    struct graph *g;
    struct exec *e;
    CUresult rc = fake_enter("cuGraphInstantiateWithFlags",
                             NEED_CONTEXT | UNSAFE | ALONE, NULL);

    if (rc)
        return rc;
    if (!out || flags & ~15ull)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    g = object_of(handle, GRAPH, "cuGraphInstantiateWithFlags");
    e = object_new(EXEC, sizeof(*e));
    e->graph = graph_copy(g);
    e->n_users = 1;
    *out = (CUgraphExec)e;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuGraphUpload", 0, stream, &s);

    if (rc)
        return rc;
    object_of(handle, EXEC, "cuGraphUpload");
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph handle)
{
    CUresult rc = fake_enter("cuGraphDestroy", 0, NULL);

    if (rc)
        return rc;
    graph_drop(object_of(handle, GRAPH, "cuGraphDestroy"));
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuGraphExecDestroy: a launch that is under way goes on. */
CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    struct exec *e;
    CUresult rc = fake_enter("cuGraphExecDestroy", ALONE, NULL);

    if (rc)
        return rc;
    e = object_of(handle, EXEC, "cuGraphExecDestroy");
    e->object.is_alive = 0;
    exec_let_go(e);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
    struct graph *g;
    CUresult rc = fake_enter("cuGraphGetNodes", 0, NULL);

    if (rc)
        return rc;
    g = object_of(handle, GRAPH, "cuGraphGetNodes");
    if (!n)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; nodes && i < *n; i++)
        nodes[i] = i < (size_t)g->n ? (CUgraphNode)g->nodes[i] : NULL;
    if (!nodes || *n > (size_t)g->n)
        *n = (size_t)g->n;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    static const CUgraphNodeType types[] = {
        [W_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
        [W_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
        [W_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
        [W_FOREIGN] = CU_GRAPH_NODE_TYPE_KERNEL,
        [W_MEMOPS] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [W_HOST] = CU_GRAPH_NODE_TYPE_HOST,
        [W_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        [W_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        [W_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        [W_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE};
    struct node *node;
    CUresult rc = fake_enter("cuGraphNodeGetType", 0, NULL);

    if (rc)
        return rc;
    node = object_of(handle, NODE, "cuGraphNodeGetType");
    *type = types[node->work.kind];
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    struct node *node;
    CUresult rc = fake_enter("cuGraphBatchMemOpNodeGetParams", 0, NULL);

    if (rc)
        return rc;
    node = object_of(handle, NODE, "cuGraphBatchMemOpNodeGetParams");
    if (!params || node->work.kind != W_MEMOPS)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memset(params, 0, sizeof(*params));
    params->count = node->work.memops.n;
    params->paramArray = node->work.memops.ops;
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuGraphExecBatchMemOpNodeSetParams: addresses, values and the kind of wait; not
 * how many operations, nor which. */
CUresult
cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                   const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    struct node *node, *mine;
    struct exec *e;
    CUresult rc = fake_enter("cuGraphExecBatchMemOpNodeSetParams", 0, NULL);

    if (rc)
        return rc;
    e = object_of(exec, EXEC, "cuGraphExecBatchMemOpNodeSetParams");
    node = object_of(handle, NODE, "cuGraphExecBatchMemOpNodeSetParams");
    mine = node->index < e->graph->n ? e->graph->nodes[node->index] : NULL;
    if (!mine || !params || mine->work.kind != W_MEMOPS ||
        params->count != mine->work.memops.n)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < params->count; i++)
        if (params->paramArray[i].operation !=
            mine->work.memops.ops[i].operation)
            return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(mine->work.memops.ops, params->paramArray,
           params->count * sizeof(*params->paramArray));
    return fake_leave(CUDA_SUCCESS);
}

static int are_alike(const struct graph *a, const struct graph *b)
{
    if (a->n != b->n)
        return 0;
    for (int i = 0; i < a->n; i++)
        if (a->nodes[i]->work.kind != b->nodes[i]->work.kind ||
            a->nodes[i]->before->n != b->nodes[i]->before->n ||
            (a->nodes[i]->before->n &&
             memcmp(a->nodes[i]->before->at, b->nodes[i]->before->at,
                    (size_t)a->nodes[i]->before->n * sizeof(int)) != 0))
            return 0;
    return 1;
}

/* DA cuGraphExecUpdate: of the same shape alone. */
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph handle,
                           CUgraphExecUpdateResultInfo *why)
{
    struct graph *g;
    struct exec *e;
    CUresult rc = fake_enter("cuGraphExecUpdate", 0, NULL);

    if (rc)
        return rc;
    e = object_of(exec, EXEC, "cuGraphExecUpdate");
    g = object_of(handle, GRAPH, "cuGraphExecUpdate");
    memset(why, 0, sizeof(*why));
    if (!are_alike(e->graph, g)) {
        why->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return fake_leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    }
    graph_drop(e->graph);
    e->graph = graph_copy(g);
    return fake_leave(CUDA_SUCCESS);
}
