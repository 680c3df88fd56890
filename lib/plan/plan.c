/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - the steps of a plan, and its text. */
#include "lib/plan/plan.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int reads_src, writes_dst;
} kinds[N_STEP_KINDS] = {
#define X(name, text, reads, writes) {text, reads, writes},
    COLL_STEP_MAP(X)
#undef X
};

int coll__step_is_recv(enum coll__step_kind kind)
{
    return kind == STEP_RECV || kind == STEP_RECV_REDUCE;
}

int coll__step_reads_src(enum coll__step_kind kind)
{
    return kinds[kind].reads_src;
}

int coll__step_writes_dst(enum coll__step_kind kind)
{
    return kinds[kind].writes_dst;
}

int coll__step_reads_dst(enum coll__step_kind kind)
{
    return kind == STEP_REDUCE || kind == STEP_SCALE ||
           kind == STEP_RECV_REDUCE;
}

const char *coll__step_name(enum coll__step_kind kind)
{
    return kinds[kind].name;
}

size_t coll__problem_bytes(const struct coll__problem *pb)
{
    return pb->count * coll_type_size(pb->type);
}

size_t coll__problem_len(const struct coll__problem *pb, enum coll__buf buf)
{
    size_t bytes = coll__problem_bytes(pb);

    if (buf == BUF_OUT && pb->collective == COLL_ALLGATHER)
        return bytes * (size_t)pb->nranks;
    if (buf == BUF_IN && pb->collective == COLL_BROADCAST &&
        pb->rank != pb->root)
        return 0;
    return bytes;
}

void coll__plan_add(struct coll__plan *plan, const struct coll__step *step)
{
    if (plan->status != COLL_OK)
        return;
    if (plan->n_steps == plan->cap_steps) {
        int cap = plan->cap_steps ? 2 * plan->cap_steps : 16;
        struct coll__step *steps =
            realloc(plan->steps, (size_t)cap * sizeof(*steps));

        if (!steps) {
            log_error("plan", "no memory for a plan of %d steps", cap);
            plan->status = COLL_ERR_NOMEM;
            return;
        }
        plan->steps = steps;
        plan->cap_steps = cap;
    }
    plan->steps[plan->n_steps++] = *step;
    if (step->dst.buf == BUF_TMP)
        plan->tmp_len = max_size(plan->tmp_len, step->dst.off + step->dst.len);
}

static void dump_span(const char *before, const struct coll__span *span,
                      FILE *to)
{
    static const char *const names[N_BUFS] = {"in", "out", "tmp"};

    fprintf(to, "%s %s[%zu,%zu)", before, names[span->buf], span->off,
            span->off + span->len);
}

static void dump_step(const struct coll__plan *plan, int i, FILE *to)
{
    const struct coll__step *step = &plan->steps[i];

    fprintf(to, "%d %s", i, coll__step_name(step->kind));
    if (step->peer >= 0)
        fprintf(to, " peer %d", step->peer);
    if (coll__step_writes_dst(step->kind))
        dump_span("", &step->dst, to);
    if (coll__step_reads_src(step->kind))
        dump_span(coll__step_writes_dst(step->kind) ? " from" : "", &step->src,
                  to);
    fprintf(to, " waits for %d\n", plan->n_deps ? plan->n_deps[i] : 0);
}

void coll__plan_dump(const struct coll__plan *plan, FILE *to)
{
    fprintf(to, "plan %s steps %d tmp %zu\n", plan->algorithm, plan->n_steps,
            plan->tmp_len);
    for (int i = 0; i < plan->n_steps; i++) {
        dump_step(plan, i, to);
        if (!plan->after)
            continue;
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            fprintf(to, "  before %d\n", plan->after[e]);
    }
}

void coll__plan_fini(struct coll__plan *plan)
{
    free(plan->steps);
    free(plan->n_deps);
    free(plan->first_after);
    free(plan->after);
    *plan = (struct coll__plan){0};
}
