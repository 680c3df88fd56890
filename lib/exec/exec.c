/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.c - run a program: the code that its engines share. */
#include "lib/exec/prog.h"

#define GROUP_BITS 24 /* of the number of a plan's sends */

/* Return a number that no send of another run has. */
static uint64_t name_of(const struct coll__prog *prog, int group)
{
    uint64_t run = prog->run.sig.seq * N_SERIES + prog->run.sig.series;

    return group ? (run << GROUP_BITS) + (uint64_t)group : 0;
}

void coll__prog_address(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__xfer *xfer = &prog->xfers[i];

    xfer->sig = prog->run.sig;
    xfer->bytes.name = name_of(prog, prog->groups[i]);
    if (step->kind == STEP_SEND) {
        xfer->buf = prog_at(prog, &step->src);
        return;
    }
    xfer->buf = prog_at(prog, &step->dst);
    xfer->with = xfer->reduce ? prog_at(prog, &step->src) : NULL;
}

/* dst = op(dst, src) or op(src, dst), as the step says.  The caller's own function is
 * called here, never by a transport: plans of such operations have no RECV_REDUCE. */
static void reduce(const struct coll__prog *prog, void *dst, void *src,
                   const struct coll__step *step)
{
    if (!prog->op.fn)
        prog->reduce(dst, dst, src, step->dst.len);
    else
        prog->op.fn(step->src_first ? src : dst, step->src_first ? dst : src,
                    dst, step->dst.len / prog->size, prog->type, prog->op.arg);
}

static int is_past(const struct coll__prog *prog, int i)
{
    return prog->is_past && prog->xfers[i].bytes.is_final;
}

void coll__prog_local(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    void *dst = prog_at(prog, &step->dst), *src = prog_at(prog, &step->src);

    if (!step->dst.len || step->kind == STEP_ORDER)
        return;
    if (step->kind == STEP_COPY)
        (is_past(prog, i) ? prog->device->copy_past : prog->device->copy)(
            dst, src, step->dst.len, prog->run.stream);
    else if (step->kind == STEP_REDUCE)
        reduce(prog, dst, src, step);
    else if (prog->op.post.is_set)
        prog->device->multiply(prog->op.post.type)(dst, dst, step->dst.len,
                                                   prog->op.post.number);
    else
        prog->scale(dst, step->dst.len, prog->nranks);
}

int coll__routes_poll(const struct coll__routes *routes)
{
    int n = 0;

    for (int t = 0; t < routes->n_all; t++) {
        struct coll__tp *tp = routes->all[t];
        int rc = tp->ops->poll(tp);

        if (rc < 0)
            return rc;
        n += rc;
    }
    return n;
}

/* If the input has a factor, all of IN is scaled into a buffer of the program before the
 * first step, and the plan reads that buffer as its IN.  A stream scales by itself
 * (stream_engine.c). */
void coll__prog_start(struct coll__prog *prog,
                      const struct coll__signature *sig, const void *in,
                      void *out, void *stream)
{
    prog->run.sig = *sig;
    prog->run.stream = stream;
    prog->run.fault = NULL;
    prog->run.in = in;
    if (prog->scaled && !prog->device->streams)
        prog->device->multiply(prog->op.pre.type)(
            prog->scaled, in, prog->scaled_len, prog->op.pre.number);
    /* steps only read it */
    prog->run.base[BUF_IN] = prog->scaled ? prog->scaled : (unsigned char *)in;
    prog->run.base[BUF_OUT] = out;
    prog->engine->start(prog);
}

int coll__prog_look(struct coll__prog *prog, int *moved)
{
    return prog->engine->look(prog, moved);
}

int coll__prog_advance(struct coll__prog *prog, int *moved)
{
    return prog->engine->advance(prog, moved);
}

size_t coll__no_on_device(const struct coll__prog *prog)
{
    (void)prog;
    return 0;
}

const struct coll__xfer *coll__prog_fault(const struct coll__prog *prog)
{
    return prog->run.fault;
}
