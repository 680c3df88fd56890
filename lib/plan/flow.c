/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.c - cut buffers at the ends of all spans: collect, sort, make unique. */
#include "lib/plan/flow.h"
#include "lib/trace/log.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

static int collect(const struct coll__span *span, enum coll__buf buf,
                   size_t *cuts, int n)
{
    if (span->buf != buf || !span->len)
        return n;
    cuts[n] = span->off;
    cuts[n + 1] = span->off + span->len;
    return n + 2;
}

static int unique(size_t *cuts, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (!kept || cuts[i] != cuts[kept - 1])
            cuts[kept++] = cuts[i];
    return kept;
}

int coll__flow_init(struct coll__flow *flow, const struct coll__plan *plan)
{
    size_t most = 4 * (size_t)plan->n_steps + 1;
    int at = 0;

    flow->cuts = malloc(most * sizeof(*flow->cuts));
    if (!flow->cuts) {
        log_error("plan", "no memory to link %d steps", plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    for (int buf = 0; buf < N_BUFS; buf++) {
        size_t *cuts = flow->cuts + at;
        int n = 0;

        flow->first[buf] = at;
        for (int i = 0; i < plan->n_steps; i++) {
            const struct coll__step *step = &plan->steps[i];

            if (coll__step_writes_dst(step->kind))
                n = collect(&step->dst, (enum coll__buf)buf, cuts, n);
            if (coll__step_reads_src(step->kind))
                n = collect(&step->src, (enum coll__buf)buf, cuts, n);
        }
        qsort(cuts, (size_t)n, sizeof(*cuts), compare);
        at += unique(cuts, n);
    }
    flow->first[N_BUFS] = at;
    return COLL_OK;
}

/* The number of the segment that begins at off. */
static int find(const struct coll__flow *flow, enum coll__buf buf, size_t off)
{
    int low = flow->first[buf], high = flow->first[buf + 1] - 1;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (flow->cuts[middle] < off)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct coll__segments coll__flow_find(const struct coll__flow *flow,
                                      const struct coll__span *span)
{
    if (!span->len)
        return (struct coll__segments){0, 0};
    return (struct coll__segments){find(flow, span->buf, span->off),
                                   find(flow, span->buf,
                                        span->off + span->len)};
}

void coll__flow_fini(struct coll__flow *flow) { free(flow->cuts); }
