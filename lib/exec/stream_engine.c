/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_engine.c - put a whole plan into a stream of a device, and be done.
 *
 * The steps go in one by one in list order: the device does local steps, a transport
 * between streams does messages.  Or all go in as one kernel.  A fused receive-send is
 * one step (fused.c).  A stream that waits cannot do anything else, so the plan's order
 * must not deadlock with the slots of the transport (coll__plan_build_in_slot_order()).
 *
 * Direct reads are not copied on their way: the receiver reads the sender's registered
 * buffer, and the sender's run ends when the receivers have read all of it.
 *
 * A run ends when all steps are in the stream.  Only the buffers change from run to run,
 * so a run may be captured.  A long plan fills the stream's queue; then the start waits
 * until the queue takes more.
 */
#include "lib/exec/prog.h"
#include "lib/trace/log.h"
#include "transports/stream.h"

#include <stdlib.h>

static int serves(const struct coll__prog *prog)
{
    const struct coll__stream_tp *tp = prog->routes->streams;
    const struct coll__plan *plan = &prog->plan;
    size_t slot;
    char why[256];

    if (!prog->device->streams || !tp || !plan->n_slots ||
        plan->n_slots > tp->n_slots)
        return 0;
    slot = prog->by_kernel ? tp->kernel.slot : tp->slot;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        size_t len = step->kind == STEP_SEND ? step->src.len : step->dst.len;

        if (coll__step_is_message(step->kind) &&
            (len > slot || tp->ops->reaches(tp, step->peer, why, sizeof(why))))
            return 0;
    }
    return 1;
}

/* ---- making -------------------------------------------------------------- */

int coll__prog_reads_direct(const struct coll__prog *prog, int i)
{
    const struct coll__stream_run *q = prog->on_stream;

    return q->direct && q->direct[i].len;
}

/* Does the host do the reduction?  The factors are another matter. */
static int is_hosts(const struct coll__prog *prog,
                    const struct coll__step *step)
{
    struct coll__op op = {.base = prog->op.base};

    return prog_work(prog, step) == WORK_REDUCE &&
           coll__op_is_hosts(&op, prog->type);
}

/* A fused step is one of the device's kernels. */
static void find_joined(struct coll__prog *prog)
{
    int has_kernels = !prog->routes->streams->has_no_kernels;

    for (int i = 0; i < prog->plan.n_steps && has_kernels; i++)
        if (!is_hosts(prog, &prog->plan.steps[i]))
            prog->on_stream->fused[i] =
                (unsigned char)coll__prog_fused(prog, i);
}

static int number_messages(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    int *n_on = calloc(2 * (size_t)prog->nranks, sizeof(int));

    if (!n_on)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];

        if (coll__step_is_message(step->kind))
            prog->on_stream->number[i] =
                n_on[2 * step->peer + (step->kind == STEP_SEND)]++;
    }
    free(n_on);
    return COLL_OK;
}

static int make(struct coll__prog *prog)
{
    size_t n = (size_t)prog->plan.n_steps + 1;
    struct coll__stream_run *q = prog->on_stream = calloc(1, sizeof(*q));

    if (!q)
        return COLL_ERR_NOMEM;
    q->number = calloc(n, sizeof(*q->number));
    q->fused = calloc(n, sizeof(*q->fused));
    if (!q->number || !q->fused || number_messages(prog))
        return COLL_ERR_NOMEM;
    find_joined(prog);
    return COLL_OK;
}

static void destroy(struct coll__prog *prog)
{
    if (!prog->on_stream)
        return;
    if (prog->on_stream->carried)
        prog->on_stream->forget(prog->on_stream->carried);
    prog->device->streams->unload(prog->on_stream->plan);
    free(prog->on_stream->number);
    free(prog->on_stream->fused);
    free(prog->on_stream->direct);
    free(prog->on_stream->last);
    free(prog->on_stream);
}

static size_t bytes(const struct coll__prog *prog)
{
    const struct coll__stream_run *q = prog->on_stream;
    size_t n = (size_t)prog->plan.n_steps + 1;
    size_t of_direct = q->direct ? sizeof(*q->direct) + sizeof(*q->last) : 0;

    return sizeof(*q) +
           n * (sizeof(*q->number) + sizeof(*q->fused) + of_direct);
}

static size_t on_device(const struct coll__prog *prog)
{
    return prog->device->streams->taken(prog->on_stream->plan);
}

/* ---- direct reads ---------------------------------------------------------- */

/* Find the last direct-read send of each slot.  When its receiver has read, all messages
 * before it in the slot have been received too. */
static void find_last(struct coll__prog *prog, unsigned char *is_found)
{
    const struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__stream_run *q = prog->on_stream;

    for (int i = prog->plan.n_steps - 1; i >= 0; i--) {
        const struct coll__step *step = &prog->plan.steps[i];
        int slot = step->peer * tp->n_slots + q->number[i] % tp->n_slots;

        if (step->kind != STEP_SEND || !coll__prog_reads_direct(prog, i) ||
            is_found[slot])
            continue;
        is_found[slot] = 1;
        q->last[q->n_last++] = i;
    }
}

int coll__prog_read_in_place(struct coll__prog *prog, struct coll__span *direct)
{
    const struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__stream_run *q = prog->on_stream;
    unsigned char *is_found = calloc((size_t)prog->nranks, (size_t)tp->n_slots);

    q->direct = direct;
    q->last = calloc((size_t)prog->plan.n_steps + 1, sizeof(*q->last));
    if (is_found && q->last) {
        find_last(prog, is_found);
        find_joined(prog);
    }
    free(is_found);
    if (is_found && q->last)
        return COLL_OK;
    log_error("exec", "no memory for a plan of %d steps", prog->plan.n_steps);
    return COLL_ERR_NOMEM;
}

void coll__prog_set_registered(struct coll__prog *prog, enum coll__buf buf,
                               const struct coll__registration *reg, size_t off)
{
    prog->on_stream->reg[buf] = reg;
    prog->on_stream->off[buf] = off;
}

void coll__prog_set_host(struct coll__prog *prog, int is_in_host,
                         int is_out_host)
{
    prog->on_stream->is_host[BUF_IN] = is_in_host && !prog->scaled_len;
    prog->on_stream->is_scaled_host = is_in_host && prog->scaled_len;
    prog->on_stream->is_host[BUF_OUT] = is_out_host != 0;
}

/* Return the source of a direct read: its address on the sender. */
static const void *at_sender(const struct coll__prog *prog, int i)
{
    const struct coll__stream_run *q = prog->on_stream;
    const struct coll__span *span = &q->direct[i];
    int peer = prog->plan.steps[i].peer;

    return q->reg[span->buf]->at[peer] + q->off[span->buf] + span->off;
}

/* ---- running ------------------------------------------------------------- */

/* Make the work a multiplication of dst in place by the factor for the result. */
static void set_post(const struct coll__prog *prog, struct coll__work *work)
{
    work->src = work->dst;
    work->is_src_host = work->is_dst_host;
    work->type = prog->op.post.type;
    work->scalar = prog->op.post.number;
}

/* Return the local work of a step; the source of a received message is added later. */
static struct coll__work work_of(const struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__work work = {
        .kind = prog_work(prog, step),
        .dst = prog_at(prog, &step->dst),
        .src = prog_at(prog, &step->src),
        .with =
            step->kind == STEP_RECV_REDUCE ? prog_at(prog, &step->src) : NULL,
        .len = step->dst.len,
        .type = prog->type,
        .op = prog->op.base,
        .nranks = prog->nranks,
        .fn = prog->op.fn,
        .arg = prog->op.arg,
        .is_src_left = step->src_first,
        .is_hosts = is_hosts(prog, step),
        .stream = prog->run.stream,
        .is_dst_host = prog->on_stream->is_host[step->dst.buf],
        .is_src_host = prog->on_stream->is_host[step->src.buf],
        .is_with_host = prog->on_stream->is_host[step->src.buf],
    };

    if (work.kind == WORK_MULTIPLY)
        set_post(prog, &work);
    return work;
}

/* Return the name of message i for the transport. */
static struct coll__message message_of(const struct coll__prog *prog, int i)
{
    int n = prog->on_stream->number[i];

    return (struct coll__message){
        .peer = prog->plan.steps[i].peer,
        .n = coll__prog_reads_direct(prog, i) ? n | COLL__DIRECT : n};
}

static int put_receive(struct coll__prog *prog, int i)
{
    struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__message from = message_of(prog, i), to;
    struct coll__work work = work_of(prog, i);

    if (coll__prog_reads_direct(prog, i))
        work.src = at_sender(prog, i);
    if (!prog->on_stream->fused[i])
        return coll__stream_recv(tp, &from, &work);
    if (prog->on_stream->fused[i] == FUSED_GONE)
        work.dst = NULL;
    to = message_of(prog, i + 1);
    return coll__stream_relay(tp, &from, &to, &work);
}

static int put_send(struct coll__prog *prog, int i)
{
    struct coll__message to = message_of(prog, i);
    struct coll__work work = work_of(prog, i);

    work.len = prog->plan.steps[i].src.len;
    return coll__stream_send(prog->routes->streams, &to, &work);
}

static int put_step(struct coll__prog *prog, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__work work;

    if (coll__step_is_recv(step->kind))
        return put_receive(prog, i);
    if (step->kind == STEP_SEND)
        return put_send(prog, i);
    if (step->kind == STEP_ORDER)
        return COLL_OK;
    work = work_of(prog, i);
    return coll__stream_work(prog->routes->streams, &work);
}

/* Return the work that scales all of IN first. */
static struct coll__work scaling_of(const struct coll__prog *prog)
{
    return (struct coll__work){.kind = WORK_MULTIPLY,
                               .dst = prog->scaled,
                               .src = prog->run.in,
                               .len = prog->scaled_len,
                               .type = prog->op.pre.type,
                               .scalar = prog->op.pre.number,
                               .is_hosts =
                                   coll__op_is_hosts(&prog->op, prog->type),
                               .stream = prog->run.stream,
                               .is_src_host = prog->on_stream->is_scaled_host};
}

static int put_scaling(struct coll__prog *prog)
{
    struct coll__work work = scaling_of(prog);

    return coll__stream_work(prog->routes->streams, &work);
}

static int put_steps(struct coll__prog *prog)
{
    int rc = prog->scaled ? put_scaling(prog) : COLL_OK;

    for (int i = 0; i < prog->plan.n_steps && rc == COLL_OK; i++) {
        rc = put_step(prog, i);
        i += prog->on_stream->fused[i] != FUSED_NOT;
    }
    return rc;
}

static int put_settling(struct coll__prog *prog)
{
    const struct coll__stream_run *q = prog->on_stream;
    int rc = COLL_OK;

    for (int k = 0; k < q->n_last && rc == COLL_OK; k++) {
        struct coll__message to = message_of(prog, q->last[k]);

        rc = coll__stream_settle(prog->routes->streams, &to, prog->run.stream);
    }
    return rc;
}

/* Called by the first run, when the addresses of slots and scratch are known. */
static int load(struct coll__prog *prog)
{
    const struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__kernel_step *steps;
    int n, rc = coll__prog_kernel_steps(prog, &steps, &n);

    if (rc)
        return rc;
    rc = prog->device->streams->load(steps, n, tp->kernel.n_sharing,
                                     prog->run.stream, &prog->on_stream->plan);
    free(steps);
    return rc;
}

static int put_kernel(struct coll__prog *prog)
{
    const struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__kernel_run run = {.in = (void *)prog->run.in,
                                   .out = prog->run.base[BUF_OUT],
                                   .tmp = prog->run.base[BUF_TMP],
                                   .stop = tp->kernel.stop,
                                   .stream = prog->run.stream};
    int rc = coll__stream_state(tp);

    if (rc == COLL_OK && !prog->on_stream->plan)
        rc = load(prog);
    return rc ? rc : prog->device->streams->launch(prog->on_stream->plan, &run);
}

/* Append the work, if the host does it. */
static void add_work(const struct coll__prog *prog, struct coll__work work,
                     struct coll__planned *planned, int *n)
{
    if (!work.len || work.kind == WORK_COPY ||
        !coll__stream_is_hosts(prog->routes->streams, &work))
        return;
    planned[(*n)++] =
        (struct coll__planned){.len = work.len, .work = work, .is_work = 1};
    prog->on_stream->has_works = 1;
}

static void add_step(const struct coll__prog *prog, int i,
                     struct coll__planned *planned, int *n)
{
    const struct coll__step *step = &prog->plan.steps[i];
    int is_send = step->kind == STEP_SEND;

    if (coll__step_is_message(step->kind))
        planned[(*n)++] = (struct coll__planned){.of = message_of(prog, i),
                                                 .len = is_send ? step->src.len
                                                                : step->dst.len,
                                                 .sig = prog->run.sig,
                                                 .is_send = is_send};
    if (!is_send && step->kind != STEP_ORDER)
        add_work(prog, work_of(prog, i), planned, n);
}

/* Describe all messages, and all that the host does, to the transport. */
static int plan_messages(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    struct coll__stream_tp *tp = prog->routes->streams;
    struct coll__planned *messages =
        calloc(2 * (size_t)plan->n_steps + 1, sizeof(*messages));
    int n = 0, rc;

    if (!messages) {
        log_error("exec", "no memory for a plan of %d steps", plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    if (prog->scaled)
        add_work(prog, scaling_of(prog), messages, &n);
    for (int i = 0; i < plan->n_steps; i++)
        add_step(prog, i, messages, &n);
    prog->on_stream->forget = tp->ops->forget;
    rc = tp->ops->plan(tp, messages, n, &prog->on_stream->carried);
    free(messages);
    return rc;
}

static int begin(struct coll__prog *prog)
{
    struct coll__stream_tp *tp = prog->routes->streams;
    int rc = COLL_OK;

    if (!tp->ops->plan)
        return COLL_OK;
    if (!prog->on_stream->carried)
        rc = plan_messages(prog);
    return rc ? rc
              : tp->ops->begin(tp, prog->on_stream->carried, prog->run.stream);
}

static int put_all(struct coll__prog *prog)
{
    int rc = begin(prog);

    if (rc == COLL_OK)
        rc = prog->by_kernel ? put_kernel(prog) : put_steps(prog);
    if (rc == COLL_OK && !prog->by_kernel)
        rc = put_settling(prog);
    return rc;
}

/* If only part of a run got into the stream, the other ranks would wait for the rest, so
 * release them.  A capture has run nothing, so it needs no release. */
static void start(struct coll__prog *prog)
{
    struct coll__stream_tp *tp = prog->routes->streams;

    prog->on_stream->status = put_all(prog);
    if (prog->on_stream->status &&
        !prog->device->streams->is_captured(prog->run.stream))
        tp->ops->release(tp, prog->on_stream->status);
}

static int look(struct coll__prog *prog, int *moved)
{
    *moved = 1;
    return prog->on_stream->status;
}

static int advance(struct coll__prog *prog, int *moved)
{
    return look(prog, moved);
}

int coll__prog_is_read(const struct coll__prog *prog)
{
    return prog->engine == &coll__engine_stream &&
           (prog->on_stream->plan || prog->on_stream->has_works);
}

const struct coll__engine coll__engine_stream = {
    .serves = serves,
    .make = make,
    .destroy = destroy,
    .bytes = bytes,
    .on_device = on_device,
    .start = start,
    .look = look,
    .advance = advance,
};
