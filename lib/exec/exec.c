/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.c - run a plan: local steps from a queue, messages from lanes.
 *
 * Both are started, and end by a status: on the host a local step has ended when
 * it is started, on a device with queues when that says so, in the order of the
 * starts.
 *
 * A lane holds the messages of one peer and direction in the plan's order.  A
 * message is issued when its edges are there and all before it on its lane have
 * been issued; it is looked at for completion when all before it are complete.
 * So a round costs time by the number of lanes, not by the number of messages
 * under way.
 *
 * The caller's own function is called for REDUCE steps here, never by a
 * transport: plans of such operations have no RECV_REDUCE.  Premul scales all
 * of IN into a buffer of the program's own before the first step, and the plan
 * has that for its IN.
 */
#include "lib/exec/prog.h"

#include <string.h>

#define GROUP_BITS 24 /* of the number of a plan's sends */

void coll__prog_address(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__xfer *xfer = &prog->xfers[i];

    xfer->head = prog->head;
    if (step->kind == STEP_SEND) {
        xfer->buf = prog_at(prog, &step->src);
        return;
    }
    xfer->buf = prog_at(prog, &step->dst);
    xfer->with = xfer->reduce ? prog_at(prog, &step->src) : NULL;
}

/* A number that no other run's sends have. */
static uint64_t number_of(const struct coll__prog *prog, int group)
{
    return group ? (prog->head.seq << GROUP_BITS) + (uint64_t)group : 0;
}

static void issue(struct coll__prog *prog, const struct lane *lane, int i)
{
    struct coll__xfer *xfer = &prog->xfers[i];

    coll__prog_address(prog, i);
    xfer->same = number_of(prog, prog->plan.same[i]);
    xfer->onward = number_of(prog, prog->onward[i]);
    if (lane->is_recv)
        lane->tp->ops->recv(lane->tp, xfer);
    else
        lane->tp->ops->send(lane->tp, xfer);
}

static void issue_ready(struct coll__prog *prog, struct lane *lane)
{
    while (lane->n_issued < lane->n_steps &&
           prog->left[lane->steps[lane->n_issued]] == 0)
        issue(prog, lane, lane->steps[lane->n_issued++]);
}

/* All edges of step i are there. */
static void make_ready(struct coll__prog *prog, int i)
{
    if (prog->lane_of[i] < 0)
        prog->ready[prog->n_ready++] = i;
    else
        issue_ready(prog, &prog->lanes[prog->lane_of[i]]);
}

static void complete(struct coll__prog *prog, int i)
{
    const struct coll__plan *plan = &prog->plan;

    prog->n_done++;
    for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
        if (--prog->left[plan->after[e]] == 0)
            make_ready(prog, plan->after[e]);
}

/* dst = op(dst, src), or of the two the other way round */
static void reduce(const struct coll__prog *prog, void *dst, void *src,
                   const struct coll__step *step)
{
    if (!prog->op.fn)
        prog->reduce(dst, dst, src, step->dst.len);
    else
        prog->op.fn(step->src_first ? src : dst, step->src_first ? dst : src,
                    dst, step->dst.len / prog->size, prog->type, prog->op.arg);
}

void coll__prog_local(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    void *dst = prog_at(prog, &step->dst), *src = prog_at(prog, &step->src);

    if (!step->dst.len || step->kind == STEP_ORDER)
        return;
    if (step->kind == STEP_COPY)
        (prog->xfers[i].streams ? prog->device->copy_past : prog->device->copy)(
            dst, src, step->dst.len, prog->stream);
    else if (step->kind == STEP_REDUCE)
        reduce(prog, dst, src, step);
    else
        prog->scale(dst, step->dst.len, prog->nranks);
}

/* ---- a device with queues --------------------------------------------------- */

static void start_work(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__work *work = &prog->works[i];

    *work = (struct coll__work){
        .kind = step->kind == STEP_COPY     ? WORK_COPY
                : step->kind == STEP_REDUCE ? WORK_REDUCE
                                            : WORK_SCALE,
        .dst = prog_at(prog, &step->dst),
        .src = prog_at(prog, &step->src),
        .len = step->dst.len,
        .type = prog->type,
        .op = prog->op.base,
        .nranks = prog->nranks,
        .stream = prog->stream,
        .status = COLL_OK,
    };
    if (!step->dst.len || step->kind == STEP_ORDER)
        return;
    work->status = COLL_IN_PROGRESS;
    prog->device->start(work);
}

/* Scale all of IN; only then is there anything to send. */
static void start_premul(struct coll__prog *prog, const void *in)
{
    struct coll__work *work = &prog->works[prog->plan.n_steps];

    *work = (struct coll__work){.kind = WORK_PREMUL,
                                .dst = prog->scaled,
                                .src = in,
                                .len = prog->scaled_len,
                                .type = prog->type,
                                .scalar = prog->op.scalar,
                                .stream = prog->stream,
                                .status = COLL_IN_PROGRESS};
    prog->is_opening = 1;
    prog->device->start(work);
}

static int is_started(const struct coll__prog *prog)
{
    return prog->works && (prog->is_opening || prog->n_ended < prog->n_taken);
}

static void start_lanes(struct coll__prog *prog);

/* See what has ended; COLL_OK or the device's failure. */
static int poll_works(struct coll__prog *prog)
{
    int rc = is_started(prog) ? prog->device->poll(prog->stream) : COLL_OK;

    if (rc == COLL_OK && prog->is_opening &&
        prog->works[prog->plan.n_steps].status == COLL_OK) {
        prog->is_opening = 0;
        start_lanes(prog);
    }
    return rc;
}

void coll__prog_abandon(struct coll__prog *prog)
{
    while (is_started(prog) && prog->device->poll(prog->stream) == COLL_OK) {
        prog->is_opening &=
            prog->works[prog->plan.n_steps].status == COLL_IN_PROGRESS;
        while (prog->n_ended < prog->n_taken &&
               prog->works[prog->ready[prog->n_ended]].status !=
                   COLL_IN_PROGRESS)
            prog->n_ended++;
    }
}

/* ---- local steps ------------------------------------------------------------- */

static int has_ended(const struct coll__prog *prog, int i)
{
    return !prog->works || prog->works[i].status != COLL_IN_PROGRESS;
}

/* What has ended goes first: messages may wait for it. */
static int run_ready(struct coll__prog *prog)
{
    int before = prog->n_taken + prog->n_ended;

    for (;;) {
        if (prog->n_ended < prog->n_taken &&
            has_ended(prog, prog->ready[prog->n_ended]))
            complete(prog, prog->ready[prog->n_ended++]);
        else if (prog->n_taken == prog->n_ready)
            break;
        else if (prog->works)
            start_work(prog, prog->ready[prog->n_taken++]);
        else
            coll__prog_local(prog, prog->ready[prog->n_taken++]);
    }
    return prog->n_taken + prog->n_ended - before;
}

/* ---- messages ---------------------------------------------------------------- */

/* Complete what has finished on a lane; the number, or a failed status. */
static int harvest(struct coll__prog *prog, struct lane *lane)
{
    int before = lane->n_done;

    while (lane->n_done < lane->n_issued) {
        int i = lane->steps[lane->n_done];
        int status = prog->xfers[i].status;

        if (status == COLL_IN_PROGRESS)
            break;
        if (status != COLL_OK) {
            prog->fault = &prog->xfers[i];
            return status;
        }
        lane->n_done++;
        complete(prog, i);
    }
    return lane->n_done - before;
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

int coll__prog_advance(struct coll__prog *prog, int *moved)
{
    int n, status;

    if (prog->is_listed) /* what has come now, the next look finds */
        return COLL_IN_PROGRESS;
    status = poll_works(prog);
    if (status)
        return status;
    n = run_ready(prog);
    for (int l = 0; l < prog->n_lanes; l++) {
        int rc = harvest(prog, &prog->lanes[l]);

        if (rc < 0)
            return rc;
        n += rc;
    }
    n += run_ready(prog);
    *moved |= n > 0;
    return prog->n_done == prog->plan.n_steps && !prog->is_opening
               ? COLL_OK
               : COLL_IN_PROGRESS;
}

int coll__prog_look(struct coll__prog *prog, int *moved)
{
    if (prog->is_listed)
        return coll__listed_run(prog, moved);
    *moved |= run_ready(prog) > 0;
    return COLL_IN_PROGRESS;
}

static void start_lanes(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;

    if (plan->n_steps)
        memcpy(prog->left, plan->n_deps, (size_t)plan->n_steps * sizeof(int));
    for (int l = 0; l < prog->n_lanes; l++)
        prog->lanes[l].n_issued = prog->lanes[l].n_done = 0;
    for (int i = 0; i < plan->n_steps; i++)
        if (prog->lane_of[i] < 0 && !prog->left[i])
            prog->ready[prog->n_ready++] = i;
    for (int l = 0; l < prog->n_lanes; l++)
        issue_ready(prog, &prog->lanes[l]);
}

void coll__prog_start(struct coll__prog *prog, const struct coll__head *head,
                      const void *in, void *out, void *stream)
{
    prog->head = *head;
    prog->stream = stream;
    prog->fault = NULL;
    prog->at = 0;
    prog->n_ready = prog->n_taken = prog->n_ended = prog->n_done = 0;
    if (prog->scaled && prog->works)
        start_premul(prog, in);
    else if (prog->scaled)
        prog->device->premul(prog->type)(prog->scaled, in, prog->scaled_len,
                                         prog->op.scalar);
    /* steps only read it */
    prog->base[BUF_IN] = prog->scaled ? prog->scaled : (unsigned char *)in;
    prog->base[BUF_OUT] = out;
    if (prog->is_listed)
        coll__listed_start(prog);
    else if (!prog->is_opening)
        start_lanes(prog);
}

const struct coll__xfer *coll__prog_fault(const struct coll__prog *prog)
{
    return prog->fault;
}
