/* SPDX-License-Identifier: BSD-3-Clause */
/* reductions.c - collectives that reduce.
 *
 * All ranks pass the same type and operation, so they agree on whether libcoll has
 * them.  A buffer that is not aligned to its elements, which MPI takes, is copied.  So are
 * pairs with gaps, which libcoll would write.
 */
#include "bindings/mpi/preload.h"

static int is_misaligned(const struct area *area)
{
    return ((uintptr_t)area->at & (area->type.align - 1)) != 0;
}

/* Begin, and find the type and the operation.  0: left to MPI. */
static int begin(struct call *call, enum coll_collective collective,
                 const struct reduction *r)
{
    struct type_info type;
    enum coll_op by;

    if (!call_begin(call, collective, r->comm))
        return 0;
    if (r->count < 0 || !type_describe(r->type, &type))
        return call_leave(collective, LEFT_ARGUMENTS);
    if (!type.is_named || !type_reduces(&type, r->op, &call->args.type, &by))
        return call_leave(collective, LEFT_TYPE);
    call->args.op = by;
    call->is_user_op = by >= COLL_N_OPS;
    return 1;
}

/* Describe a buffer of n elements.  A stage has them as libcoll reduces them. */
static void set_area(struct area *area, const void *at, size_t n,
                     MPI_Datatype type)
{
    area_set(area, at, 0, type);
    area->count = n;
    area->type.staged = area->type.extent;
}

/* Set the input and output of n_in and n_out elements: a NULL output where a rank has
 * none.  in_stage: the output must not be written while the input is read. */
static void set_buffers(struct call *call, const struct reduction *r,
                        size_t n_in, size_t n_out, int in_stage)
{
    const void *in = r->in == MPI_PLACE ? r->out : r->in;

    set_area(&call->in, in, n_in, r->type);
    call->args.in = area_stage(call, &call->in, is_misaligned(&call->in));
    if (!r->out)
        return;
    set_area(&call->out, r->out, n_out, r->type);
    call->args.out =
        area_stage(call, &call->out, in_stage || is_misaligned(&call->out));
}

/* In place MPI wants this rank's block at the beginning of the buffer, and libcoll where
 * the block was. */
static int needs_stage(const struct reduction *r, size_t before)
{
    return r->in == MPI_PLACE && before > 0;
}

/* All ranks have vectors of one length. */
static int prepare(struct call *call, enum coll_collective collective,
                   const struct reduction *r)
{
    if (!begin(call, collective, r))
        return 0;
    call->args.count = (size_t)r->count;
    set_buffers(call, r, call->args.count, call->args.count, 0);
    return 1;
}

int prepare_allreduce(struct call *call, const struct reduction *r)
{
    return prepare(call, COLL_ALLREDUCE, r);
}

int prepare_scan(struct call *call, const struct reduction *r)
{
    return prepare(call, COLL_SCAN, r);
}

int prepare_exscan(struct call *call, const struct reduction *r)
{
    if (!prepare(call, COLL_EXSCAN, r))
        return 0;
    if (call->comm->rank == 0)
        call->out.count = 0; /* a stage is not copied: the output stays */
    return 1;
}

int prepare_reduce(struct call *call, const struct reduction *r, int root)
{
    struct reduction mine = *r;

    if (!begin(call, COLL_REDUCE, r))
        return 0;
    if (root < 0 || root >= call->comm->size ||
        (root != call->comm->rank && r->in == MPI_PLACE))
        return call_leave(COLL_REDUCE, LEFT_ARGUMENTS);
    if (root != call->comm->rank)
        mine.out = NULL;
    call->args.root = root;
    call->args.count = (size_t)r->count;
    set_buffers(call, &mine, call->args.count, call->args.count, 0);
    return 1;
}

int prepare_reduce_scatter_block(struct call *call, const struct reduction *r)
{
    size_t n = (size_t)r->count;

    if (!begin(call, COLL_REDUCE_SCATTER, r))
        return 0;
    call->args.count = n;
    set_buffers(call, r, n * (size_t)call->comm->size, n,
                needs_stage(r, n * (size_t)call->comm->rank));
    return 1;
}

int prepare_reduce_scatter(struct call *call, const struct reduction *r)
{
    size_t all = 0, before = 0;
    struct reduction sized = *r;

    sized.count = 0;
    if (!begin(call, COLL_REDUCE_SCATTERV, &sized))
        return 0;
    if (!r->counts)
        return call_leave(COLL_REDUCE_SCATTERV, LEFT_ARGUMENTS);
    for (int i = 0; i < call->comm->size; i++) {
        if (r->counts[i] < 0)
            return call_leave(COLL_REDUCE_SCATTERV, LEFT_ARGUMENTS);
        if (i == call->comm->rank)
            before = all;
        call->comm->in_counts[i] = (size_t)r->counts[i];
        all += (size_t)r->counts[i];
    }
    call->args.in_counts = call->comm->in_counts;
    set_buffers(call, r, all, (size_t)r->counts[call->comm->rank],
                needs_stage(r, before));
    return 1;
}
