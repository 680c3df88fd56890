/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_program.c - kernel programs: a plan as steps that one kernel executes.
 *
 * The steps keep the plan's order, as in a stream.  A step waits for the steps before it
 * only if it depends on one of them, or reuses a slot, and if no step in between has
 * waited already.
 */
#include "lib/exec/prog.h"
#include "lib/trace/log.h"
#include "transports/stream.h"

#include <stdlib.h>

struct planning {
    const struct coll__prog *prog;
    struct coll__kernel_step *steps;
    int n;
    int *needs; /* [n_steps]: the last step that it depends on; or -1 */
    int *last;  /* [2 * nranks * n_slots]: the last step that used a slot; or -1 */
    int met;    /* a wait has covered all steps before this one */
};

/* The scaled input is stored behind TMP. */
static struct coll__operand operand_of(const struct coll__prog *prog,
                                       const struct coll__span *span)
{
    static const enum coll__place places[N_BUFS] = {
        [BUF_IN] = PLACE_IN, [BUF_OUT] = PLACE_OUT, [BUF_TMP] = PLACE_TMP};

    if (span->buf == BUF_IN && prog->scaled)
        return (struct coll__operand){
            PLACE_TMP,
            (uint64_t)(prog->scaled - prog->run.base[BUF_TMP]) + span->off};
    return (struct coll__operand){places[span->buf], span->off};
}

static void note_need(int *need, int step)
{
    if (*need < step)
        *need = step;
}

/* Assign message i its slot; it depends on the last step that used the slot. */
static struct coll__operand take_slot(struct planning *p, int i,
                                      struct coll__kernel_step *to)
{
    const struct coll__prog *prog = p->prog;
    const struct coll__step *step = &prog->plan.steps[i];
    const struct coll__stream_tp *tp = prog->routes->streams;
    int n = prog->on_stream->number[i], is_send = step->kind == STEP_SEND;
    int *last =
        &p->last[(2 * step->peer + is_send) * tp->n_slots + n % tp->n_slots];
    struct coll__kernel_slot slot;

    tp->ops->kernel_slot(tp, step->peer, is_send, n, &slot);
    note_need(&p->needs[i], *last);
    *last = i;
    to->is_send |= is_send;
    to->is_recv |= !is_send;
    *(is_send ? &to->send.own : &to->recv.own) = slot.own;
    *(is_send ? &to->send.theirs : &to->recv.theirs) = slot.theirs;
    return (struct coll__operand){PLACE_HERE, (uint64_t)slot.at};
}

/* Return the source of a direct read, relative to this rank's buffer: the distance
 * between the two ranks' registered memory is the same in every run. */
static struct coll__operand at_sender(const struct coll__prog *prog, int i)
{
    const struct coll__span *span = &prog->on_stream->direct[i];
    const struct coll__registration *reg = prog->on_stream->reg[span->buf];
    struct coll__operand there = operand_of(prog, span);

    there.at +=
        (uint64_t)reg->at[prog->plan.steps[i].peer] - (uint64_t)reg->base;
    return there;
}

/* Fuse receive i with the next step, which sends its result. */
static void pass_on(struct planning *p, int i, struct coll__kernel_step *to)
{
    to->next = take_slot(p, i + 1, to);
    to->has_next = 1;
    note_need(&p->needs[i], p->needs[i + 1]);
    if (p->prog->on_stream->fused[i] == FUSED_GONE) {
        to->dst = to->next;
        to->has_next = 0;
    }
}

static void set_factor(struct coll__kernel_step *to,
                       const struct coll__factor *factor)
{
    to->type = factor->type;
    to->scalar = factor->number;
}

static void plan_step(struct planning *p, int i)
{
    const struct coll__prog *prog = p->prog;
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__kernel_step *to = &p->steps[p->n++];
    struct coll__operand dst = operand_of(prog, &step->dst),
                         src = operand_of(prog, &step->src);

    *to = (struct coll__kernel_step){.kind = prog_work(prog, step),
                                     .dst = dst,
                                     .src = src,
                                     .with = dst,
                                     .len = step->dst.len,
                                     .type = prog->type,
                                     .op = prog->op.base,
                                     .nranks = prog->nranks};
    if (step->kind == STEP_SEND) {
        to->dst = take_slot(p, i, to);
        to->len = coll__prog_reads_direct(prog, i) ? 0 : step->src.len;
    } else if (coll__step_is_recv(step->kind)) {
        to->with = src;
        to->src = take_slot(p, i, to);
        if (coll__prog_reads_direct(prog, i))
            to->src = at_sender(prog, i);
    } else if (step->kind == STEP_SCALE) {
        to->src = dst;
        if (to->kind == WORK_MULTIPLY)
            set_factor(to, &prog->op.post);
    }
    if (p->prog->on_stream->fused[i])
        pass_on(p, i, to);
    to->is_behind = p->needs[i] >= p->met;
    if (to->is_behind)
        p->met = i;
}

/* Add the last steps: wait until the peers have read this rank's buffers. */
static void plan_settling(struct planning *p)
{
    const struct coll__prog *prog = p->prog;
    const struct coll__stream_tp *tp = prog->routes->streams;
    const struct coll__stream_run *q = prog->on_stream;

    for (int k = 0; k < q->n_last; k++) {
        int i = q->last[k];
        struct coll__kernel_slot slot;

        tp->ops->kernel_slot(tp, prog->plan.steps[i].peer, 1, q->number[i],
                             &slot);
        p->steps[p->n++] = (struct coll__kernel_step){
            .settles = 1, .send = {slot.own, slot.theirs}};
    }
}

/* Add the first step: scale the input. */
static void plan_scaling(struct planning *p)
{
    const struct coll__prog *prog = p->prog;
    struct coll__kernel_step *to = &p->steps[p->n++];

    *to = (struct coll__kernel_step){
        .kind = WORK_MULTIPLY,
        .dst = {PLACE_TMP, (uint64_t)(prog->scaled - prog->run.base[BUF_TMP])},
        .src = {PLACE_IN, 0},
        .len = prog->scaled_len};
    set_factor(to, &prog->op.pre);
}

static void plan_all(struct planning *p)
{
    const struct coll__plan *plan = &p->prog->plan;
    const unsigned char *fused = p->prog->on_stream->fused;
    int n_slots = p->prog->routes->streams->n_slots;

    for (int i = 0; i < 2 * p->prog->nranks * n_slots; i++)
        p->last[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        p->needs[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            if (!fused[i] || plan->after[e] != i + 1)
                note_need(&p->needs[plan->after[e]], i);
    if (p->prog->scaled)
        plan_scaling(p);
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind != STEP_ORDER && !(i && fused[i - 1]))
            plan_step(p, i);
    if (p->prog->scaled && p->n > 1)
        p->steps[1].is_behind = 1;
    plan_settling(p);
}

int coll__prog_kernel_steps(const struct coll__prog *prog,
                            struct coll__kernel_step **steps, int *n)
{
    size_t most = (size_t)(prog->plan.n_steps + prog->on_stream->n_last) + 1;
    size_t n_slots = (size_t)prog->routes->streams->n_slots;
    struct planning p = {
        .prog = prog,
        .steps = calloc(most, sizeof(*p.steps)),
        .needs = malloc(most * sizeof(int)),
        .last = malloc(2 * (size_t)prog->nranks * n_slots * sizeof(int))};
    int is_there = p.steps && p.needs && p.last;

    if (is_there)
        plan_all(&p);
    else
        log_error("exec", "no memory for a plan of %d steps",
                  prog->plan.n_steps);
    free(p.needs);
    free(p.last);
    if (!is_there) {
        free(p.steps);
        return COLL_ERR_NOMEM;
    }
    *steps = p.steps;
    *n = p.n;
    return COLL_OK;
}
