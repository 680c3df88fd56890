/* SPDX-License-Identifier: BSD-3-Clause */
/* dump.c - plans as text: one plan for people, or all plans of a problem as a plan
 * file (load.c describes the format and reads it). */
#include "lib/plan/all_ranks.h"
#include "lib/plan/waits.h"
#include "lib/plan/words.h"

static void dump_span(const char *before, const struct coll__span *span,
                      FILE *to)
{
    fprintf(to, "%s %s[%zu,%zu)", before, coll__buf_names[span->buf],
            span->off, span->off + span->len);
}

static void dump_step(const struct coll__plan *plan, int i,
                      const struct coll__waits *w, FILE *to)
{
    const struct coll__step *step = &plan->steps[i];

    fprintf(to, "%d %s", i, coll__step_name(step->kind));
    if (step->peer >= 0)
        fprintf(to, " peer %d", step->peer);
    if (coll__step_writes_dst(step->kind))
        dump_span("", &step->dst, to);
    if (step->kind == STEP_RECV_REDUCE) {
        if (!coll__same_span(&step->src, &step->dst))
            dump_span(" with", &step->src, to);
    } else if (coll__step_reads_src(step->kind)) {
        dump_span(coll__step_writes_dst(step->kind) ? " from" : "", &step->src,
                  to);
    }
    if (step->src_first)
        fputs(" left", to);
    if (w && w->first[i] < w->first[i + 1]) {
        fputs(" waits for", to);
        for (int e = w->first[i]; e < w->first[i + 1]; e++)
            fprintf(to, " %d", w->steps[e]);
    }
    fputc('\n', to);
}

static void dump_steps(const struct coll__plan *plan, FILE *to)
{
    struct coll__waits w = {0};
    int has_waits = plan->after && coll__waits_init(&w, plan) == COLL_OK;

    for (int i = 0; i < plan->n_steps; i++)
        dump_step(plan, i, has_waits ? &w : NULL, to);
    coll__waits_fini(&w);
}

void coll__plan_dump(const struct coll__plan *plan, FILE *to)
{
    fprintf(to, "plan %s steps %d tmp %zu\n", plan->algorithm, plan->n_steps,
            plan->tmp_len);
    dump_steps(plan, to);
}

/* ---- a plan file ---------------------------------------------------------- */

void coll__plans_dump_head(const struct coll__plans *plans, FILE *to)
{
    const struct coll__problem *pb = &plans->pbs[0];

    fprintf(to, "coll_plan 1\ncollective %s\ntype %s\nop %s\norder %s\n",
            coll_collective_name(pb->collective), coll_type_name(pb->type),
            pb->is_user_op ? "user" : coll_op_name(pb->op),
            coll__order_names[pb->order]);
    fprintf(to, "root %d\nranks %d\ncount %zu\nalgorithm %s\nchunk %zu\n",
            pb->root, pb->nranks, pb->count, plans->algorithm, plans->chunk);
    fprintf(to, "edges listed\n");
}

static void dump_numbers(const char *name, const size_t *numbers, int n,
                         FILE *to)
{
    if (!numbers)
        return;
    fputs(name, to);
    for (int i = 0; i < n; i++)
        fprintf(to, " %zu", numbers[i]);
    fputc('\n', to);
}

void coll__plans_dump_rank(const struct coll__plans *plans, int rank, FILE *to)
{
    const struct coll__problem *pb = &plans->pbs[rank];

    fprintf(to, "\nrank %d tmp %zu", rank, plans->plans[rank].tmp_len);
    if (pb->count != plans->pbs[0].count)
        fprintf(to, " count %zu", pb->count);
    fputs(pb->in_place ? " in_place\n" : "\n", to);
    dump_numbers("in_counts", pb->in_counts, pb->nranks, to);
    dump_numbers("in_displs", pb->in_displs, pb->nranks, to);
    dump_numbers("out_counts", pb->out_counts, pb->nranks, to);
    dump_numbers("out_displs", pb->out_displs, pb->nranks, to);
    dump_steps(&plans->plans[rank], to);
}

void coll__plans_dump(const struct coll__plans *plans, FILE *to)
{
    coll__plans_dump_head(plans, to);
    for (int r = 0; r < plans->pbs[0].nranks; r++)
        coll__plans_dump_rank(plans, r, to);
}
