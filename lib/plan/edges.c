/* SPDX-License-Identifier: BSD-3-Clause */
/* edges.c - infer which step waits for which.
 *
 * Walk the steps in order and remember, for each segment, the step that wrote
 * it last and the steps that have read it since.  A read waits for the writer;
 * a write waits for the writer and for those readers.  That is every hazard,
 * so any order of events that keeps the edges gives the result of the list's
 * own order.
 */
#include "lib/plan/flow.h"
#include "lib/plan/intern.h"
#include "lib/plan/plan.h"
#include "lib/trace/log.h"

#include <stdlib.h>

struct node { /* one step that reads a segment */
    int step, next;
};

struct edge {
    int from, to;
};

struct linker {
    struct coll__flow *flow;
    int *writer, *readers; /* of each segment: a step, a node; -1 none */
    struct node *nodes;
    int n_nodes, cap_nodes;
    struct edge *edges;
    int n_edges, cap_edges;
    int *stamp; /* [step]: the last step to which it got an edge */
    int *sent;  /* [segment]: the last SEND since it was written, or -1 */
    struct coll__numbers starts; /* of sent spans that no step writes */
    int *last; /* [start]: the last SEND from there; space for all steps */
    int *same; /* [n_steps]: plan->same */
    int status;
};

/* Grow the array by at least one item. */
static void *grow(struct linker *l, void *items, int n, int *cap, size_t size)
{
    void *more;

    if (n < *cap)
        return items;
    more = realloc(items, (size_t)(*cap ? 2 * *cap : 64) * size);
    if (!more) {
        l->status = COLL_ERR_NOMEM;
        return items;
    }
    *cap = *cap ? 2 * *cap : 64;
    return more;
}

static void add_edge(struct linker *l, int from, int to)
{
    if (from < 0 || from == to || l->stamp[from] == to)
        return;
    l->edges = grow(l, l->edges, l->n_edges, &l->cap_edges, sizeof(*l->edges));
    if (l->status != COLL_OK)
        return;
    l->stamp[from] = to;
    l->edges[l->n_edges++] = (struct edge){from, to};
}

static void reads(struct linker *l, int step, struct coll__segments s)
{
    for (int i = s.from; i < s.to; i++) {
        add_edge(l, l->writer[i], step);
        l->nodes =
            grow(l, l->nodes, l->n_nodes, &l->cap_nodes, sizeof(*l->nodes));
        if (l->status != COLL_OK)
            return;
        l->nodes[l->n_nodes] = (struct node){step, l->readers[i]};
        l->readers[i] = l->n_nodes++;
    }
}

static void writes(struct linker *l, int step, struct coll__segments s)
{
    for (int i = s.from; i < s.to; i++) {
        add_edge(l, l->writer[i], step);
        for (int n = l->readers[i]; n >= 0; n = l->nodes[n].next)
            add_edge(l, l->nodes[n].step, step);
        l->writer[i] = step;
        l->readers[i] = l->sent[i] = -1;
    }
}

/* Return the last SEND of a span with the same start, in a buffer that no step writes,
 * or -1. */
static int last_from(struct linker *l, const struct coll__span *span, int step)
{
    int n_seen = l->starts.n, other = -1, number;

    if (!span->len)
        return -1;
    number = coll__number(&l->starts, (uint64_t)span->buf << 62 | span->off);
    if (number < 0) {
        l->status = COLL_ERR_NOMEM;
        return -1;
    }
    if (number < n_seen)
        other = l->last[number];
    l->last[number] = step;
    return other;
}

/* Note a SEND.  It carries the same bytes as an earlier one if both have the same span
 * and no step between them writes there. */
static void sends(struct linker *l, const struct coll__plan *plan, int step)
{
    struct coll__segments s = l->flow->touches[step].src;
    int other = s.from < s.to ? l->sent[s.from]
                              : last_from(l, &plan->steps[step].src, step);

    if (other >= 0 &&
        !coll__same_span(&plan->steps[other].src, &plan->steps[step].src))
        other = -1;
    for (int i = s.from; i < s.to; i++) {
        if (l->sent[i] != other)
            other = -1;
        l->sent[i] = step;
    }
    l->same[step] = other >= 0 ? l->same[other] : step + 1;
}

/* Sort the edges by their first step and put them into the plan's arrays. */
static int store(struct linker *l, struct coll__plan *plan)
{
    int n = plan->n_steps;

    plan->n_deps = calloc((size_t)n + 1, sizeof(int));
    plan->first_after = calloc((size_t)n + 2, sizeof(int));
    plan->after = malloc(((size_t)l->n_edges + 1) * sizeof(int));
    if (!plan->n_deps || !plan->first_after || !plan->after)
        return COLL_ERR_NOMEM;
    for (int e = 0; e < l->n_edges; e++) {
        plan->n_deps[l->edges[e].to]++;
        plan->first_after[l->edges[e].from + 2]++;
    }
    for (int i = 1; i <= n; i++)
        plan->first_after[i + 1] += plan->first_after[i];
    for (int e = 0; e < l->n_edges; e++)
        plan->after[plan->first_after[l->edges[e].from + 1]++] = l->edges[e].to;
    plan->same = l->same;
    l->same = NULL;
    return COLL_OK;
}

static int linker_init(struct linker *l, const struct coll__plan *plan)
{
    size_t n;

    if (coll__flow_need(l->flow, plan))
        return COLL_ERR_NOMEM;
    n = (size_t)l->flow->n_segments + 1;
    l->writer = malloc(n * sizeof(int));
    l->readers = malloc(n * sizeof(int));
    l->sent = malloc(n * sizeof(int));
    l->stamp = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    l->last = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    l->same = calloc((size_t)plan->n_steps + 1, sizeof(int));
    if (!l->writer || !l->readers || !l->sent || !l->stamp || !l->last ||
        !l->same || coll__numbers_init(&l->starts, 0))
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        l->writer[i] = l->readers[i] = l->sent[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        l->stamp[i] = -1;
    return COLL_OK;
}

static void linker_fini(struct linker *l)
{
    free(l->writer);
    free(l->readers);
    free(l->nodes);
    free(l->edges);
    free(l->sent);
    free(l->stamp);
    free(l->last);
    coll__numbers_fini(&l->starts);
    free(l->same);
}

int coll__flow_link(struct coll__flow *flow, struct coll__plan *plan)
{
    struct linker l = {.flow = flow};

    l.status = linker_init(&l, plan);
    for (int i = 0; i < plan->n_steps && l.status == COLL_OK; i++) {
        reads(&l, i, flow->touches[i].src);
        if (plan->steps[i].kind == STEP_SEND)
            sends(&l, plan, i);
        writes(&l, i, flow->touches[i].dst);
    }
    if (l.status == COLL_OK)
        l.status = store(&l, plan);
    if (l.status != COLL_OK)
        log_error("plan", "no memory to link %d steps", plan->n_steps);
    linker_fini(&l);
    return l.status;
}

int coll__plan_link(struct coll__plan *plan)
{
    struct coll__flow flow = {0};
    int rc = coll__flow_link(&flow, plan);

    coll__flow_fini(&flow);
    return rc;
}
