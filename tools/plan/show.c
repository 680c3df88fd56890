/* SPDX-License-Identifier: BSD-3-Clause */
/* show.c - print plans as a plan file, as JSON or as a drawing.
 *
 * Only the shown plans are built, so one rank's plan is quick to print for any number of
 * ranks.
 */
#include "tools/plan/tool.h"

#include <stdio.h>
#include <stdlib.h>

#define DRAWN 8 /* ranks; with more, only one rank's plan can be drawn */

/* The plans that a job shows; the others are empty. */
struct shown {
    struct machine machine;
    struct cast cast;
    struct coll__plans plans;
};

static int build_shown(struct shown *s, const struct job *job,
                       const struct coll__algo *algo)
{
    int rc = COLL_OK;

    s->plans = (struct coll__plans){.pbs = s->cast.pbs, .chunk = job->chunk};
    snprintf(s->plans.algorithm, sizeof(s->plans.algorithm), "%s", algo->name);
    s->plans.plans = calloc((size_t)job->ranks, sizeof(*s->plans.plans));
    if (!s->plans.plans)
        return say(1, "no memory for %d plans", job->ranks);
    for (int r = 0; r < job->ranks && rc == COLL_OK; r++)
        if (job->rank < 0 || job->rank == r)
            rc = coll__plan_build(algo, &s->cast.pbs[r], job->chunk,
                                  &s->plans.plans[r]);
    return rc ? say_last() : 0;
}

static void shown_fini(struct shown *s)
{
    for (int r = 0; s->plans.plans && r < s->cast.pbs[0].nranks; r++)
        coll__plan_fini(&s->plans.plans[r]);
    free(s->plans.plans);
    cast_fini(&s->cast);
    machine_fini(&s->machine);
}

/* shown_fini() in any case. */
static int shown_init(struct shown *s, const struct job *job)
{
    const struct coll__algo *algo;
    int rc;

    *s = (struct shown){0};
    rc = machine_init(&s->machine, job, job->ranks);
    if (!rc)
        rc = cast_init(&s->cast, job, &s->machine);
    if (rc)
        return rc;
    algo = choose(job, &s->cast.pbs[0]);
    return algo ? build_shown(s, job, algo) : 1;
}

int dump(const struct job *job)
{
    struct shown s;
    int rc;

    if (job->rank < 0 && job->ranks > COLL__PLANS_RANKS)
        return say(2, "a plan file has up to %d ranks; add --rank for one of "
                   "%d", COLL__PLANS_RANKS, job->ranks);
    rc = shown_init(&s, job);
    if (!rc && job->json) {
        rc = json_dump(&s.plans, job->rank);
    } else if (!rc) {
        coll__plans_dump_head(&s.plans, stdout);
        for (int r = 0; r < job->ranks; r++)
            if (job->rank < 0 || job->rank == r)
                coll__plans_dump_rank(&s.plans, r, stdout);
    }
    shown_fini(&s);
    return rc;
}

/* ---- the drawing ---------------------------------------------------------- */

static void draw_span(const struct coll__span *span)
{
    static const char *const names[N_BUFS] = {"in", "out", "tmp"};

    printf("%s[%zu,%zu)", names[span->buf], span->off, span->off + span->len);
}

static void draw_step(const struct coll__step *step, int r, int i)
{
    printf("    r%d_%d [label=\"%d %s", r, i, i, coll__step_name(step->kind));
    if (step->peer >= 0)
        printf(" %s %d", step->kind == STEP_SEND ? "to" : "from", step->peer);
    fputs("\\n", stdout);
    if (coll__step_writes_dst(step->kind))
        draw_span(&step->dst);
    if (coll__step_reads_src(step->kind)) {
        fputs(step->kind == STEP_RECV_REDUCE      ? " with "
              : coll__step_writes_dst(step->kind) ? " from "
                                                  : "",
              stdout);
        draw_span(&step->src);
    }
    printf("\"%s];\n", step->peer >= 0 ? ", style=filled" : "");
}

static void draw_rank(const struct coll__plan *plan, int r)
{
    printf("  subgraph cluster_%d {\n    label=\"rank %d\";\n", r, r);
    for (int i = 0; i < plan->n_steps; i++)
        draw_step(&plan->steps[i], r, i);
    for (int i = 0; i < plan->n_steps; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            printf("    r%d_%d -> r%d_%d;\n", r, i, r, plan->after[e]);
    fputs("  }\n", stdout);
}

/* Return the step that receives the nth message from rank r, or -1. */
static int find_recv(const struct coll__plan *plan, int r, int nth)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (coll__step_is_recv(plan->steps[i].kind) &&
            plan->steps[i].peer == r && nth-- == 0)
            return i;
    return -1;
}

static void draw_messages(const struct coll__plans *plans, int r)
{
    const struct coll__plan *plan = &plans->plans[r];

    for (int i = 0; i < plan->n_steps; i++) {
        int peer = plan->steps[i].peer, nth = 0, to;

        if (plan->steps[i].kind != STEP_SEND)
            continue;
        for (int k = 0; k < i; k++)
            nth += plan->steps[k].kind == STEP_SEND &&
                   plan->steps[k].peer == peer;
        to = find_recv(&plans->plans[peer], r, nth);
        if (to >= 0)
            printf("  r%d_%d -> r%d_%d [style=bold, color=blue, "
                   "constraint=false];\n", r, i, peer, to);
    }
}

int draw(const struct job *job)
{
    struct shown s;
    int rc;

    if (job->rank < 0 && job->ranks > DRAWN)
        return say(2, "a drawing has up to %d ranks; add --rank for one of %d",
                   DRAWN, job->ranks);
    rc = shown_init(&s, job);
    if (!rc) {
        printf("digraph plan {\n  label=\"%s %s\";\n  node [shape=box, "
               "fontsize=10];\n", coll_collective_name(job->collective),
               s.plans.algorithm);
        for (int r = 0; r < job->ranks; r++)
            if (job->rank < 0 || job->rank == r)
                draw_rank(&s.plans.plans[r], r);
        for (int r = 0; r < job->ranks && job->rank < 0; r++)
            draw_messages(&s.plans, r);
        fputs("}\n", stdout);
    }
    shown_fini(&s);
    return rc;
}
