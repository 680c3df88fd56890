/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.c - run a plan: local steps from a queue, messages from lanes.
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
#include "lib/exec/exec.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

struct lane {
    struct coll__tp *tp;
    int peer, is_recv;
    int *steps; /* [n_steps], in order; within prog->lane_steps */
    int n_steps, n_issued, n_done;
};

struct coll__prog {
    struct coll__plan plan;
    int nranks;
    size_t size; /* bytes of an element */
    enum coll_type type;
    struct coll__op op;
    const struct coll__device *device;
    coll__reduce_fn *reduce; /* NULL for the caller's function */
    coll__scale_fn *scale;
    unsigned char *scaled; /* premul: IN times the scalar, or NULL */
    size_t scaled_len;
    const struct coll__routes *routes;

    unsigned char *base[N_BUFS]; /* of this run; TMP is the program's own */
    void *stream;
    struct coll__head head;

    int *left;                /* [n_steps]: edges still to come */
    int *lane_of;             /* [n_steps]: -1 for a local step */
    struct coll__xfer *xfers; /* [n_steps] */
    struct lane *lanes;
    int n_lanes, *lane_steps;
    int *ready, n_ready, n_taken; /* local steps, in order of readiness */
    int n_done;
    const struct coll__xfer *fault;
};

static void *at(const struct coll__prog *prog, const struct coll__span *span)
{
    return span->len ? prog->base[span->buf] + span->off : NULL;
}

static void issue(struct coll__prog *prog, const struct lane *lane, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    const struct coll__span *span = lane->is_recv ? &step->dst : &step->src;
    struct coll__xfer *xfer = &prog->xfers[i];

    xfer->peer = step->peer;
    xfer->buf = at(prog, span);
    xfer->len = span->len;
    xfer->head = prog->head;
    xfer->with = xfer->buf;
    xfer->reduce = step->kind == STEP_RECV_REDUCE ? prog->reduce : NULL;
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

static void run_local(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    void *dst = at(prog, &step->dst), *src = at(prog, &step->src);

    if (!step->dst.len || step->kind == STEP_ORDER)
        return;
    if (step->kind == STEP_COPY)
        prog->device->copy(dst, src, step->dst.len, prog->stream);
    else if (step->kind == STEP_REDUCE)
        reduce(prog, dst, src, step);
    else
        prog->scale(dst, step->dst.len, prog->nranks);
}

static int run_ready(struct coll__prog *prog)
{
    int before = prog->n_taken;

    while (prog->n_taken < prog->n_ready) {
        int i = prog->ready[prog->n_taken++];

        run_local(prog, i);
        complete(prog, i);
    }
    return prog->n_taken - before;
}

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
    int n = run_ready(prog);

    for (int l = 0; l < prog->n_lanes; l++) {
        int rc = harvest(prog, &prog->lanes[l]);

        if (rc < 0)
            return rc;
        n += rc;
    }
    n += run_ready(prog);
    *moved |= n > 0;
    return prog->n_done == prog->plan.n_steps ? COLL_OK : COLL_IN_PROGRESS;
}

int coll__prog_run(struct coll__prog *prog, int *moved)
{
    int n = run_ready(prog), rc = coll__routes_poll(prog->routes);

    if (rc < 0)
        return rc;
    *moved = n + rc > 0;
    return coll__prog_advance(prog, moved);
}

void coll__prog_start(struct coll__prog *prog, const struct coll__head *head,
                      const void *in, void *out, void *stream)
{
    const struct coll__plan *plan = &prog->plan;

    prog->head = *head;
    if (prog->scaled)
        prog->device->premul(prog->type)(prog->scaled, in, prog->scaled_len,
                                         prog->op.scalar);
    /* steps only read it */
    prog->base[BUF_IN] = prog->scaled ? prog->scaled : (unsigned char *)in;
    prog->base[BUF_OUT] = out;
    prog->stream = stream;
    prog->n_ready = prog->n_taken = prog->n_done = 0;
    prog->fault = NULL;
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

const struct coll__xfer *coll__prog_fault(const struct coll__prog *prog)
{
    return prog->fault;
}

const struct coll__plan *coll__prog_plan(const struct coll__prog *prog)
{
    return &prog->plan;
}

size_t coll__prog_scratch(const struct coll__prog *prog)
{
    return prog->plan.tmp_len + prog->scaled_len;
}

/* ---- making it ----------------------------------------------------------- */

static int find_lane(struct coll__prog *prog, int peer, int is_recv)
{
    int l = 0;

    while (l < prog->n_lanes && (prog->lanes[l].peer != peer ||
                                 prog->lanes[l].is_recv != is_recv))
        l++;
    if (l == prog->n_lanes)
        prog->lanes[prog->n_lanes++] =
            (struct lane){.tp = prog->routes->to[peer],
                          .peer = peer,
                          .is_recv = is_recv};
    return l;
}

/* Count each lane's messages, give it its part of lane_steps, fill that. */
static void make_lanes(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    int *next = prog->lane_steps;

    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        int is_recv = coll__step_is_recv(step->kind);

        prog->lane_of[i] = -1;
        if (!is_recv && step->kind != STEP_SEND)
            continue;
        prog->lane_of[i] = find_lane(prog, step->peer, is_recv);
        prog->lanes[prog->lane_of[i]].n_steps++;
    }
    for (int l = 0; l < prog->n_lanes; l++) {
        prog->lanes[l].steps = next;
        next += prog->lanes[l].n_steps;
        prog->lanes[l].n_steps = 0;
    }
    for (int i = 0; i < plan->n_steps; i++)
        if (prog->lane_of[i] >= 0) {
            struct lane *lane = &prog->lanes[prog->lane_of[i]];

            lane->steps[lane->n_steps++] = i;
        }
}

static int allocate(struct coll__prog *prog)
{
    size_t n = (size_t)prog->plan.n_steps + 1;

    prog->left = malloc(n * sizeof(int));
    prog->lane_of = malloc(n * sizeof(int));
    prog->lane_steps = malloc(n * sizeof(int));
    prog->ready = malloc(n * sizeof(int));
    prog->xfers = calloc(n, sizeof(*prog->xfers));
    prog->lanes = malloc(min_size(n, 2 * (size_t)prog->nranks) *
                         sizeof(*prog->lanes));
    if (!prog->left || !prog->lane_of || !prog->lane_steps || !prog->ready ||
        !prog->xfers || !prog->lanes)
        return COLL_ERR_NOMEM;
    if (prog->plan.tmp_len)
        prog->base[BUF_TMP] = prog->device->alloc(prog->plan.tmp_len);
    if (prog->scaled_len)
        prog->scaled = prog->device->alloc(prog->scaled_len);
    return (prog->plan.tmp_len && !prog->base[BUF_TMP]) ||
                   (prog->scaled_len && !prog->scaled)
               ? COLL_ERR_NOMEM
               : COLL_OK;
}

int coll__prog_create(const struct coll__problem *pb, struct coll__plan *plan,
                      const struct coll__binding *to, struct coll__prog **out)
{
    struct coll__prog *prog = calloc(1, sizeof(*prog));
    size_t scratch = plan->tmp_len;

    if (!prog) {
        coll__plan_fini(plan);
        goto fail;
    }
    prog->plan = *plan;
    *plan = (struct coll__plan){0};
    prog->nranks = pb->nranks;
    prog->routes = to->routes;
    prog->type = pb->type;
    prog->size = coll_type_size(pb->type);
    prog->op = *to->op;
    prog->device = to->device;
    if (!prog->op.fn)
        prog->reduce = prog->device->reduce(pb->type, pb->op);
    prog->scale = prog->device->scale(pb->type);
    if (prog->op.is_premul)
        prog->scaled_len = coll__problem_len(pb, BUF_IN);
    scratch += prog->scaled_len;
    if (allocate(prog)) {
        coll__prog_destroy(prog);
        goto fail;
    }
    make_lanes(prog);
    *out = prog;
    return COLL_OK;

fail:
    log_error("exec", "no memory for an operation with %zu bytes of scratch",
              scratch);
    return COLL_ERR_NOMEM;
}

void coll__prog_destroy(struct coll__prog *prog)
{
    if (!prog)
        return;
    if (prog->base[BUF_TMP])
        prog->device->free(prog->base[BUF_TMP], prog->plan.tmp_len);
    if (prog->scaled)
        prog->device->free(prog->scaled, prog->scaled_len);
    coll__plan_fini(&prog->plan);
    free(prog->left);
    free(prog->lane_of);
    free(prog->lane_steps);
    free(prog->ready);
    free(prog->xfers);
    free(prog->lanes);
    free(prog);
}
