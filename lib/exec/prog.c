/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.c - bind a plan to transports and memory: compute here what is the same in every
 * run. */
#include "lib/exec/prog.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

/* If a group of sends sends step i's result at once, return the group's number; else
 * 0. */
static int find_onward(const struct coll__prog *prog, int i)
{
    const struct coll__plan *plan = &prog->plan;

    for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
        int next = plan->after[e];

        if (coll__plan_passes_on(plan, i, next))
            return prog->is_p2p ? 0 : plan->same[next];
    }
    return 0;
}

/* Return how many bytes of their callers' buffers the ranks of this host read and
 * write, as far as this rank can tell: they compete for the caches. */
static size_t data_of(const struct coll__prog *prog,
                      const struct coll__problem *pb)
{
    size_t in = coll__problem_len(pb, BUF_IN);
    size_t out = coll__problem_len(pb, BUF_OUT);
    int is_pair = prog->is_p2p || pb->collective == COLL_GATHER ||
                  pb->collective == COLL_GATHERV ||
                  pb->collective == COLL_SCATTER ||
                  pb->collective == COLL_SCATTERV;
    int n = is_pair ? 2 : prog->routes->n_local;

    return (size_t)n * (pb->in_place ? max_size(in, out) : in + out);
}

/* Describe the bytes of all messages, so that transports choose how to copy them. */
static struct coll__bytes describe(const struct coll__prog *prog,
                                   const struct coll__problem *pb)
{
    int is_gather =
        pb->collective == COLL_ALLGATHER || pb->collective == COLL_ALLGATHERV;

    return (struct coll__bytes){
        .beside = data_of(prog, pb),
        .is_exchange = coll__is_exchange(pb->collective, pb->nranks),
        .is_copied = is_gather && !pb->in_place,
    };
}

/* Does step i store a final result, which no step reads but the sends that follow? */
static int is_final(const struct coll__prog *prog, int i)
{
    const struct coll__plan *plan = &prog->plan;

    return plan->steps[i].dst.buf == BUF_OUT &&
           (plan->first_after[i] == plan->first_after[i + 1] ||
            prog->groups[i]);
}

/* Fill in the part of each transfer that is the same in every run. */
static void make_xfers(struct coll__prog *prog, const struct coll__problem *pb,
                       const struct coll__binding *to)
{
    const struct coll__plan *plan = &prog->plan;
    struct coll__bytes bytes = describe(prog, pb);

    assert(!to->ended || plan->n_steps == 1);
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        struct coll__xfer *xfer = &prog->xfers[i];

        xfer->peer = step->peer;
        xfer->channel = to->channel;
        xfer->ended = to->ended;
        xfer->owner = to->owner;
        xfer->len = step->kind == STEP_SEND ? step->src.len : step->dst.len;
        xfer->bytes = bytes;
        xfer->reduce = step->kind == STEP_RECV_REDUCE ? prog->reduce : NULL;
        if (step->kind == STEP_SEND && !prog->is_p2p) /* whose seq is another */
            prog->groups[i] = plan->same[i];
        if (!coll__step_is_recv(step->kind) && step->kind != STEP_COPY)
            continue;
        prog->groups[i] = find_onward(prog, i);
        xfer->bytes.is_final = is_final(prog, i);
    }
    prog->is_past = bytes.beside >= coll__limit(LIMIT_STREAM_MIN);
}

/* ---- scratch ------------------------------------------------------------- */

/* Return where the scaled input begins: it is stored after TMP. */
static size_t scaled_at(const struct coll__prog *prog)
{
    return round_up(prog->plan.tmp_len, CACHE_LINE);
}

/* Returns SIZE_MAX, which no allocation can meet, if the sum overflows. */
size_t coll__prog_scratch(const struct coll__prog *prog)
{
    size_t len;

    if (!prog->scaled_len)
        return prog->plan.tmp_len;
    if (scaled_at(prog) < prog->plan.tmp_len ||
        __builtin_add_overflow(scaled_at(prog), prog->scaled_len, &len))
        return SIZE_MAX;
    return len;
}

void coll__prog_lend(struct coll__prog *prog, void *scratch)
{
    prog->run.base[BUF_TMP] = scratch;
    if (prog->scaled_len)
        prog->scaled = prog->run.base[BUF_TMP] + scaled_at(prog);
}

static int allocate_scratch(struct coll__prog *prog)
{
    size_t len = coll__prog_scratch(prog);

    if (!len)
        return COLL_OK;
    prog->scratch = prog->device->alloc(len);
    if (!prog->scratch)
        return COLL_ERR_NOMEM;
    coll__prog_lend(prog, prog->scratch);
    return COLL_OK;
}

/* ---- the whole ----------------------------------------------------------- */

/* Returns NULL if the plan does not suit the device's streams. */
static const struct coll__engine *choose_engine(const struct coll__prog *prog)
{
    if (prog->device->streams)
        return coll__engine_stream.serves(prog) ? &coll__engine_stream : NULL;
    return coll__engine_listed.serves(prog) ? &coll__engine_listed
                                            : &coll__engine_lanes;
}

static int allocate(struct coll__prog *prog, int is_lent_scratch)
{
    size_t n = (size_t)prog->plan.n_steps + 1;

    prog->xfers = calloc(n, sizeof(*prog->xfers));
    prog->groups = calloc(n, sizeof(int));
    if (prog->xfers && prog->groups && !prog->engine->make(prog) &&
        (is_lent_scratch || !allocate_scratch(prog)))
        return COLL_OK;
    log_error("exec", "no memory for an operation with %zu bytes of scratch",
              coll__prog_scratch(prog));
    return COLL_ERR_NOMEM;
}

/* Allocate a program, and fill in what follows from the problem and the binding. */
static struct coll__prog *prog_new(const struct coll__problem *pb,
                                   struct coll__plan *plan,
                                   const struct coll__binding *to)
{
    struct coll__prog *prog = calloc(1, sizeof(*prog));

    if (!prog) {
        log_error("exec", "no memory for an operation");
        coll__plan_fini(plan);
        return NULL;
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
    if (prog->op.pre.is_set)
        prog->scaled_len = coll__problem_len(pb, BUF_IN);
    prog->is_p2p = coll__is_p2p(pb->collective);
    prog->by_kernel = to->by_kernel;
    return prog;
}

int coll__prog_create(const struct coll__problem *pb, struct coll__plan *plan,
                      const struct coll__binding *to, struct coll__prog **out)
{
    struct coll__prog *prog = prog_new(pb, plan, to);
    int rc = COLL_OK;

    if (!prog)
        return COLL_ERR_NOMEM;
    prog->engine = choose_engine(prog);
    if (prog->engine) {
        rc = allocate(prog, to->is_lent_scratch);
    } else {
        log_error("exec", "the plan of this %s cannot run in a stream",
                  coll_collective_name(pb->collective));
        rc = COLL_ERR_INTERNAL;
    }
    if (rc) {
        coll__prog_destroy(prog);
        return rc;
    }
    make_xfers(prog, pb, to);
    *out = prog;
    return COLL_OK;
}

void coll__prog_destroy(struct coll__prog *prog)
{
    if (!prog)
        return;
    if (prog->scratch)
        prog->device->free(prog->scratch, coll__prog_scratch(prog));
    coll__plan_fini(&prog->plan);
    if (prog->engine)
        prog->engine->destroy(prog);
    free(prog->xfers);
    free(prog->groups);
    free(prog);
}

const struct coll__plan *coll__prog_plan(const struct coll__prog *prog)
{
    return &prog->plan;
}

size_t coll__prog_bytes(const struct coll__prog *prog)
{
    size_t n = (size_t)prog->plan.n_steps + 1;

    return sizeof(*prog) + coll__plan_bytes(&prog->plan) +
           n * (sizeof(*prog->xfers) + sizeof(int)) + prog->engine->bytes(prog);
}

size_t coll__prog_on_device(const struct coll__prog *prog)
{
    return prog->engine->on_device(prog);
}

int coll__prog_is_listed(const struct coll__prog *prog)
{
    return prog->engine == &coll__engine_listed;
}
