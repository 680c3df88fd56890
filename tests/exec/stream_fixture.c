/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.c - operations in ranks' streams, with the oracle's numbers. */
#include "tests/exec/stream_fixture.h"
#include "tests/support/parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the fake driver takes for a fat binary: nvcc need not be there. */
const unsigned char coll__cuda_image[] = {0x50, 0xed, 0x55, 0xba};

int stream_registers;

static int gather(void *arg, const void *in, size_t len, void *out)
{
    const struct world_rank *me = arg;

    return me->oob.allgather(me->oob.arg, in, out, len);
}

static void register_all(struct world_rank *me, const struct stage *s)
{
    struct coll__stream_tp *tp = s->rank->tp;
    struct coll__tp_env env = {.allgather = gather, .arg = me};

    ck_assert(!tp->ops->enroll(tp, &env, (void *)s->in, MOST));
    ck_assert(!tp->ops->enroll(tp, &env, (void *)s->out, MOST));
}

static void deregister_all(struct world_rank *me, const struct stage *s)
{
    struct coll__stream_tp *tp = s->rank->tp;
    struct coll__tp_env env = {.allgather = gather, .arg = me};

    ck_assert(!tp->ops->dismiss(tp, &env, (void *)s->in));
    ck_assert(!tp->ops->dismiss(tp, &env, (void *)s->out));
}

/* Freeing waits for all streams of the context, those of other ranks too: once. */
struct stage *stream_stage_new(struct world_rank *me)
{
    struct stage *s = calloc(1, sizeof(*s));

    ck_assert_ptr_nonnull(s);
    s->rank = me->arg;
    s->in = fake_memory(MOST);
    s->out = fake_memory(MOST);
    s->scratch = fake_memory(4 * MOST);
    s->routes =
        (struct coll__routes){.n_local = me->size, .streams = s->rank->tp};
    s->ask = (__typeof__(s->ask))gpu_symbol("fake_cuda_counts");
    if (stream_registers)
        register_all(me, s);
    return s;
}

void stream_stage_free(struct world_rank *me, struct stage *s)
{
    OK(cu.StreamSynchronize(s->rank->s));
    world_meet(me);
    if (stream_registers)
        deregister_all(me, s);
    OK(cu.MemFree(s->in));
    OK(cu.MemFree(s->out));
    OK(cu.MemFree(s->scratch));
    free(s);
}

/* ---- one operation ------------------------------------------------------- */

int stream_scales(const struct deed *d)
{
    return d->op.own == OWN_PREMUL ||
           (coll__reduces(d->op.collective) && d->op.op == COLL_AVG &&
            (d->op.type == COLL_F16 || d->op.type == COLL_BF16));
}

static void set_shape(struct deed *d, int rank, int in_place)
{
    const struct oracle_op *op = &d->op;
    struct coll__problem *pb = &d->pb;

    oracle_layout(op, rank, 0, &d->in);
    oracle_layout(op, rank, 1, &d->out);
    *pb = (struct coll__problem){.collective = op->collective,
                                 .type = op->type,
                                 .op = op->own ? COLL_SUM : op->op,
                                 .root = op->root,
                                 .nranks = op->size,
                                 .rank = rank,
                                 .count = op->count};
    if (op->collective == COLL_BARRIER) {
        pb->type = COLL_U8;
        pb->op = COLL_MAX;
        pb->count = 1;
    }
    if (op->collective == COLL_ALLGATHERV || op->collective == COLL_GATHERV)
        pb->count = d->in.counts[0];
    if (op->collective == COLL_REDUCE_SCATTERV ||
        op->collective == COLL_SCATTERV)
        pb->count = d->out.counts[0];
    pb->in_counts = d->in.counts;
    pb->in_displs = d->in.displs;
    pb->out_counts = d->out.counts;
    pb->out_displs = d->out.displs;
    pb->in_place =
        in_place && !stream_scales(d) && coll__problem_may_be_in_place(pb);
}

/* A v collective's root alone may have the counts of all. */
static void set_counts(struct deed *d)
{
    struct coll__problem *pb = &d->pb;
    int c = (int)pb->collective;

    if (c != COLL_ALLTOALLV && c != COLL_REDUCE_SCATTERV && c != COLL_SCATTERV)
        pb->in_counts = pb->in_displs = NULL;
    if (c != COLL_ALLTOALLV && c != COLL_ALLGATHERV && c != COLL_GATHERV)
        pb->out_counts = pb->out_displs = NULL;
}

void stream_problem(struct deed *d, int rank, int in_place)
{
    set_shape(d, rank, in_place);
    set_counts(d);
    if (stream_registers)
        d->pb = coll__problem_read_direct(&d->pb, 1u << BUF_IN | 1u << BUF_OUT);
}

/* In place, the rank's own part of its input lies in OUT. */
static void put_in_place(const struct deed *d, struct stage *s)
{
    const struct coll__problem *pb = &d->pb;
    int is_exchange = pb->collective == COLL_ALLTOALL;
    struct coll__span own = coll__own_in(pb);

    if (pb->collective == COLL_BROADCAST && pb->rank != pb->root)
        return; /* as it lies: there is nothing to put */
    if (coll__problem_shape(pb, BUF_IN) == SHAPE_WHOLE) {
        memcpy(s->host_out + own.off, s->host_in, own.len);
        return;
    }
    for (int q = 0; q < pb->nranks; q++) {
        struct coll__span part = coll__part(pb, BUF_IN, q);
        struct coll__span to =
            is_exchange ? coll__part(pb, BUF_OUT, q) : coll__whole(pb, BUF_OUT);

        if (is_exchange || q == pb->rank)
            memcpy(s->host_out + to.off, s->host_in + part.off, part.len);
    }
}

void stream_fill(const struct deed *d, struct stage *s)
{
    memset(s->host_in, 0xa5, MOST);
    memset(s->host_out, 0x5a, MOST);
    oracle_fill(&d->op, d->pb.rank, &d->in, s->host_in);
    if (d->pb.in_place)
        put_in_place(d, s);
    fake_put(s->in, s->host_in, MOST);
    fake_put(s->out, s->host_out, MOST);
}

static int read_in_place(const struct coll__algo *algo, const struct deed *d,
                         const struct coll__slots *slots, const struct stage *s,
                         struct coll__prog *prog)
{
    const struct coll__stream_tp *tp = s->rank->tp;
    struct coll__direct of = {algo, &d->pb, slots, 1u << BUF_OUT};
    struct coll__span *direct;
    int rc;

    if (!stream_scales(d))
        of.bufs |= 1u << BUF_IN;
    rc = coll__plan_direct_reads(&of, coll__prog_plan(prog), &direct);
    if (rc)
        return rc;
    coll__prog_set_registered(
        prog, BUF_IN, coll__registration_of(tp, (void *)s->in, MOST), 0);
    coll__prog_set_registered(
        prog, BUF_OUT, coll__registration_of(tp, (void *)s->out, MOST), 0);
    return coll__prog_read_in_place(prog, direct);
}

/* Is the operation exact, and one of the device's kernels? */
static int has_kernel(const struct oracle_op *op)
{
    struct coll__op of = {.base = op->op};

    return oracle_is_exact(op) && !coll__op_is_hosts(&of, op->type);
}

void stream_draw_op(struct oracle_op *op, unsigned k)
{
    if (is_pair(op->type)) /* reduced by the host alone */
        op->type = part_of_type(op->type);
    op->op = (enum coll_op)(k % COLL_N_OPS);
    while (!has_kernel(op))
        op->op = (enum coll_op)((op->op + 1) % COLL_N_OPS);
}

int stream_make(const struct coll__algo *algo, const struct deed *d,
                struct stage *s, struct coll__prog **prog)
{
    const struct coll__stream_tp *tp = s->rank->tp;
    int by_kernel = tp->kernel.most == SIZE_MAX;
    const struct coll__slots slots = {
        .n_slots = tp->n_slots, .slot = by_kernel ? tp->kernel.slot : tp->slot};
    struct coll__op op = {.base = d->pb.op};
    struct coll__binding to = {.op = &op,
                               .routes = &s->routes,
                               .device = &coll__device_cuda,
                               .is_lent_scratch = 1,
                               .by_kernel = by_kernel};
    struct coll__plan plan;
    int rc = coll__plan_build_in_slot_order(algo, &d->pb, &slots, &plan);

    if (rc)
        return rc;
    if (coll__reduces(d->op.collective))
        coll__op_for(&(struct coll_args){.op = d->pb.op, .type = d->pb.type},
                     d->pb.nranks, &op);
    if (d->op.own == OWN_PREMUL) {
        int64_t scalar[2] = {1 + d->pb.rank % 3}; /* an i64 */

        coll__factor_set(d->pb.type, scalar, &op.pre);
    }
    rc = coll__prog_create(&d->pb, &plan, &to, prog);
    if (rc == COLL_OK) {
        ck_assert_uint_le(coll__prog_scratch(*prog), 4 * MOST);
        coll__prog_lend(*prog, (void *)s->scratch);
    }
    if (rc == COLL_OK && stream_registers)
        rc = read_in_place(algo, d, &slots, s, *prog);
    return rc;
}

int stream_start(struct coll__prog *prog, struct stage *s)
{
    struct coll__signature sig = {.seq = 1};
    int moved = 0;

    coll__prog_start(prog, &sig, (void *)s->in, (void *)s->out, s->rank->s);
    return coll__prog_look(prog, &moved);
}

int stream_reached(struct coll__prog *prog, const struct stage *s)
{
    const struct coll__stream_tp *tp = s->rank->tp;
    int moved, rc = coll__prog_look(prog, &moved);

    if (rc == COLL_OK && cu.StreamQuery(s->rank->s) == CUDA_ERROR_NOT_READY)
        return COLL_IN_PROGRESS;
    return rc ? rc : tp->ops->state(tp);
}

int stream_finish(struct coll__prog *prog, const struct stage *s)
{
    OK(cu.StreamSynchronize(s->rank->s));
    return stream_reached(prog, s);
}

CUgraphExec stream_capture(struct coll__prog *prog, struct stage *s)
{
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamBeginCapture(s->rank->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert_int_eq(stream_start(prog, s), COLL_OK);
    OK(cu.StreamEndCapture(s->rank->s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphDestroy(graph));
    return exec;
}

void stream_fall_apart(struct world_rank *me, struct stage *s,
                       struct coll__prog *prog)
{
    struct stream_rank *rank = s->rank;

    coll__prog_destroy(prog);
    stream_stage_free(me, s);
    stream_close(rank, 0);
}

int stream_is_right(const struct deed *d, struct stage *s)
{
    if (d->op.collective == COLL_BARRIER)
        return 1;
    OK(cu.MemcpyDtoH(s->host_out, s->out, MOST));
    return oracle_verify(&d->op, d->pb.rank, &d->out, s->host_out) < 0;
}
