/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - coll_plan's JSON output, for programs. */
#include "tools/plan/tool.h"

#include <jansson.h>

#include <stdio.h>

static int print(json_t *all)
{
    int rc = !all || json_dumpf(all, stdout, JSON_INDENT(2));

    json_decref(all);
    putchar('\n');
    return rc ? say(1, "cannot write JSON") : 0;
}

static json_int_t number(size_t n) { return (json_int_t)n; }

/* ---- explain -------------------------------------------------------------- */

static json_t *candidate(const struct coll__candidate *c, double best,
                         const struct parts *p)
{
    if (c->refusal)
        return json_pack("{s:s, s:s, s:s}", "algorithm", c->algo->name, "what",
                         c->algo->what, "refused", c->refusal);
    return json_pack("{s:s, s:s, s:f, s:f, s:{s:f, s:f, s:f, s:f}}",
                     "algorithm", c->algo->name, "what", c->algo->what,
                     "seconds", c->seconds, "ratio",
                     best > 0 ? c->seconds / best : 1.0, "parts", "latency",
                     p->latency, "bandwidth", p->bandwidth, "shared",
                     p->shared, "work", p->work);
}

int json_explain(const struct job *job, const struct machine *machine,
                 const struct coll__candidate *list, int n,
                 const struct parts *parts)
{
    json_t *all = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(all,
                              candidate(&list[i], list[0].seconds, &parts[i]));
    return print(json_pack("{s:s, s:I, s:i, s:s, s:o}", "collective",
                           coll_collective_name(job->collective), "bytes",
                           number(job->bytes), "ranks", job->ranks, "machine",
                           machine->what, "candidates", all));
}

/* ---- dump ----------------------------------------------------------------- */

static json_t *span_json(const struct coll__span *span)
{
    static const char *const names[N_BUFS] = {"in", "out", "tmp"};

    return json_pack("{s:s, s:I, s:I}", "buffer", names[span->buf], "offset",
                     number(span->off), "bytes", number(span->len));
}

static json_t *step_json(const struct coll__step *step)
{
    json_t *all = json_pack("{s:s}", "kind", coll__step_name(step->kind));

    if (step->peer >= 0)
        json_object_set_new(all, "peer", json_integer(step->peer));
    if (coll__step_writes_dst(step->kind))
        json_object_set_new(all, "dst", span_json(&step->dst));
    if (coll__step_reads_src(step->kind))
        json_object_set_new(all, "src", span_json(&step->src));
    if (step->src_first)
        json_object_set_new(all, "left", json_true());
    json_object_set_new(all, "waits_for", json_array());
    return all;
}

static json_t *rank_json(const struct coll__plans *plans, int r)
{
    const struct coll__plan *plan = &plans->plans[r];
    json_t *steps = json_array();

    for (int i = 0; i < plan->n_steps; i++)
        json_array_append_new(steps, step_json(&plan->steps[i]));
    for (int i = 0; i < plan->n_steps; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            json_array_append_new(
                json_object_get(json_array_get(steps, (size_t)plan->after[e]),
                                "waits_for"),
                json_integer(i));
    return json_pack("{s:i, s:I, s:b, s:o}", "rank", r, "tmp_bytes",
                     number(plan->tmp_len), "in_place", plans->pbs[r].in_place,
                     "steps", steps);
}

int json_dump(const struct coll__plans *plans, int rank)
{
    const struct coll__problem *pb = &plans->pbs[0];
    json_t *ranks = json_array();

    for (int r = 0; r < pb->nranks; r++)
        if (rank < 0 || rank == r)
            json_array_append_new(ranks, rank_json(plans, r));
    return print(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:o}",
                           "collective", coll_collective_name(pb->collective),
                           "algorithm", plans->algorithm, "type",
                           coll_type_name(pb->type), "op", coll_op_name(pb->op),
                           "root", pb->root, "ranks", pb->nranks, "count",
                           number(pb->count), "plans", ranks));
}

/* ---- check and simulate --------------------------------------------------- */

int json_check(const struct coll__plans *plans, const char *why, int n_slots)
{
    return print(json_pack("{s:s, s:s, s:i, s:b, s:i, s:s}", "collective",
                           coll_collective_name(plans->pbs[0].collective),
                           "algorithm", plans->algorithm, "ranks",
                           plans->pbs[0].nranks, "is_proven", why == NULL,
                           "slots", n_slots, "fault", why ? why : ""));
}

int json_check_all(long n_problems, long n_plans, long n_failed,
                   double seconds)
{
    return print(json_pack("{s:I, s:I, s:I, s:f}", "problems",
                           (json_int_t)n_problems, "plans", (json_int_t)n_plans,
                           "failures", (json_int_t)n_failed, "seconds",
                           seconds));
}

int json_simulate(const struct job *job, const struct machine *machine,
                  const struct coll__algo *algo, double predicted,
                  const struct coll__sim_result *result)
{
    return print(json_pack(
        "{s:s, s:s, s:I, s:i, s:s, s:f, s:f, s:I, s:f, s:i}", "collective",
        coll_collective_name(job->collective), "algorithm", algo->name, "bytes",
        number(job->bytes), "ranks", job->ranks, "machine", machine->what,
        "predicted_s", predicted, "simulated_s", result->seconds, "messages",
        (json_int_t)result->n_messages, "bytes_sent", result->bytes,
        "last_rank", result->last_rank));
}
