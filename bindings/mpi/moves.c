/* SPDX-License-Identifier: BSD-3-Clause */
/* moves.c - collectives that move bytes.
 *
 * Ranks may describe the same bytes by different counts and types, so libcoll is given
 * bytes.  In place, libcoll's input is this rank's block of the output, as in MPI.
 */
#include "bindings/mpi/preload.h"

/* Is it one of the communicator's ranks? */
static int is_rank(const struct call *call, int root)
{
    return root >= 0 && root < call->comm->size;
}

static int set(struct area *area, const struct side *side, int n)
{
    return side->counts ? area_set_blocks(area, side->at, side->counts,
                                          side->displs, n, side->type)
                        : area_set(area, side->at, side->count, side->type);
}

/* Describe a buffer that holds a block of each rank; as set() for the v functions. */
static int set_all(struct area *area, const struct side *side, int n)
{
    int is_right = set(area, side, n);

    if (!side->counts)
        area->count *= (size_t)n;
    return is_right;
}

/* The input is the block of this rank in the output, or in its stage. */
static void take_own_block(struct call *call)
{
    struct area *in = &call->in, *out = &call->out;
    int rank = call->comm->rank;
    size_t block = out->counts ? (size_t)out->counts[rank]
                               : out->count / (size_t)call->comm->size;
    ptrdiff_t at = (ptrdiff_t)block * rank;
    size_t before = 0;

    if (out->counts && out->displs)
        at = out->displs[rank];
    for (int i = 0; i < rank; i++)
        before += out->counts ? (size_t)out->counts[i] : block;
    if (out->counts && !out->displs)
        at = (ptrdiff_t)before;
    in->type = out->type;
    in->at = out->at + at * (ptrdiff_t)out->type.extent;
    in->count = block;
    if (out->stage)
        in->stage = out->stage + before * out->type.size;
    call->args.in = in->stage ? in->stage : in->at;
}

/* Describe the input of a gather, which may be in place. */
static int set_in(struct call *call, const struct side *in)
{
    if (in->at == MPI_PLACE) {
        take_own_block(call);
        return 1;
    }
    if (!area_set(&call->in, in->at, in->count, in->type))
        return 0;
    call->args.in = area_stage(call, &call->in, 0);
    return 1;
}

/* Give libcoll the blocks of the output. */
static void spread_out(struct call *call)
{
    area_spread(&call->out, call->comm->out_counts, call->comm->out_displs);
    call->args.out_counts = call->comm->out_counts;
    call->args.out_displs = call->comm->out_displs;
}

static void spread_in(struct call *call)
{
    area_spread(&call->in, call->comm->in_counts, call->comm->in_displs);
    call->args.in_counts = call->comm->in_counts;
    call->args.in_displs = call->comm->in_displs;
}

/* The description was wrong: MPI reports it. */
static int refuse(struct call *call)
{
    call_free(call);
    return call_leave(call->args.collective, LEFT_ARGUMENTS);
}

/* ---- barrier, broadcast --------------------------------------------------- */

int prepare_barrier(struct call *call, MPI_Comm comm)
{
    return call_begin(call, COLL_BARRIER, comm);
}

int prepare_bcast(struct call *call, struct side buf, int root, MPI_Comm comm)
{
    struct area *area;

    if (!call_begin(call, COLL_BROADCAST, comm))
        return 0;
    area = root == call->comm->rank ? &call->in : &call->out;
    if (!is_rank(call, root) || !area_set(area, buf.at, buf.count, buf.type))
        return refuse(call);
    call->args.root = root;
    call->args.count = area_bytes(area);
    call->args.out = area_stage(call, area, 0);
    call->args.in = call->args.out;
    return 1;
}

/* ---- allgather ------------------------------------------------------------ */

int prepare_allgather(struct call *call, struct side in, struct side out,
                      MPI_Comm comm)
{
    if (!call_begin(call, COLL_ALLGATHER, comm))
        return 0;
    if (!set_all(&call->out, &out, call->comm->size))
        return refuse(call);
    call->args.out = area_stage(call, &call->out, 0);
    if (!set_in(call, &in))
        return refuse(call);
    call->args.count = area_bytes(&call->in);
    return 1;
}

int prepare_allgatherv(struct call *call, struct side in, struct side out,
                       MPI_Comm comm)
{
    if (!call_begin(call, COLL_ALLGATHERV, comm))
        return 0;
    if (!out.displs || !out.counts ||
        !set_all(&call->out, &out, call->comm->size))
        return refuse(call);
    call->args.out = area_stage(call, &call->out, 0);
    if (!set_in(call, &in))
        return refuse(call);
    spread_out(call);
    return 1;
}

/* ---- alltoall ------------------------------------------------------------- */

/* The input is all of the output: libcoll works in place, or in the output's stage. */
static void take_all(struct call *call)
{
    call->in = call->out;
    call->in.is_owner = 0;
    call->args.in = call->args.out;
}

int prepare_alltoall(struct call *call, struct side in, struct side out,
                     MPI_Comm comm)
{
    if (!call_begin(call, COLL_ALLTOALL, comm))
        return 0;
    if (!set_all(&call->out, &out, call->comm->size))
        return refuse(call);
    call->args.out = area_stage(call, &call->out, 0);
    if (in.at == MPI_PLACE) {
        take_all(call);
    } else {
        if (!set_all(&call->in, &in, call->comm->size))
            return refuse(call);
        call->args.in = area_stage(call, &call->in, 0);
    }
    call->args.count = area_bytes(&call->out) / (size_t)call->comm->size;
    return 1;
}

int prepare_alltoallv(struct call *call, struct side in, struct side out,
                      MPI_Comm comm)
{
    int is_in_place = in.at == MPI_PLACE, n;

    if (!call_begin(call, COLL_ALLTOALLV, comm))
        return 0;
    n = call->comm->size;
    if (is_in_place)
        in = out;
    if (!in.counts || !in.displs || !out.counts || !out.displs ||
        !set_all(&call->out, &out, n) || !set_all(&call->in, &in, n))
        return refuse(call);
    call->args.out = area_stage(call, &call->out, 0);
    call->args.in = area_stage(call, &call->in, is_in_place);
    spread_out(call);
    spread_in(call);
    return 1;
}

/* ---- gather --------------------------------------------------------------- */

/* Describe a gather's buffers; those of the output at the root only. */
static int set_gather(struct call *call, const struct side *in,
                      const struct side *out, int root)
{
    if (!is_rank(call, root))
        return 0;
    call->args.root = root;
    if (root == call->comm->rank) {
        if (!set_all(&call->out, out, call->comm->size))
            return 0;
        call->args.out = area_stage(call, &call->out, 0);
    } else if (in->at == MPI_PLACE) {
        return 0;
    }
    if (!set_in(call, in))
        return 0;
    call->args.count = area_bytes(&call->in);
    return 1;
}

int prepare_gather(struct call *call, struct side in, struct side out, int root,
                   MPI_Comm comm)
{
    if (!call_begin(call, COLL_GATHER, comm))
        return 0;
    return set_gather(call, &in, &out, root) ? 1 : refuse(call);
}

int prepare_gatherv(struct call *call, struct side in, struct side out,
                    int root, MPI_Comm comm)
{
    if (!call_begin(call, COLL_GATHERV, comm))
        return 0;
    if (root == call->comm->rank && (!out.counts || !out.displs))
        return refuse(call);
    if (!set_gather(call, &in, &out, root))
        return refuse(call);
    if (root == call->comm->rank)
        spread_out(call);
    return 1;
}

/* ---- scatter -------------------------------------------------------------- */

/* At the root, in place: the output is its block of the input, which stays there. */
static void leave_own_block(struct call *call)
{
    const struct area *in = &call->in;
    int rank = call->comm->rank;
    size_t bytes = call->args.count;
    ptrdiff_t at = (ptrdiff_t)bytes * rank;

    if (in->counts) {
        size_t before = 0;

        for (int i = 0; i < rank; i++)
            before += (size_t)in->counts[i];
        at = (in->stage ? (ptrdiff_t)before : in->displs[rank]) *
             (ptrdiff_t)in->type.size;
    }
    call->args.out = (in->stage ? in->stage : in->at) + at;
}

/* Bytes of this rank's block of the input. */
static size_t own_bytes(const struct call *call)
{
    const struct area *in = &call->in;

    return in->counts ? (size_t)in->counts[call->comm->rank] * in->type.size
                      : area_bytes(in) / (size_t)call->comm->size;
}

static int set_scatter(struct call *call, const struct side *in,
                       const struct side *out, int root)
{
    int is_root = root == call->comm->rank;

    if (!is_rank(call, root) || (!is_root && out->at == MPI_PLACE))
        return 0;
    call->args.root = root;
    if (is_root) {
        if (!set_all(&call->in, in, call->comm->size))
            return 0;
        call->args.in = area_stage(call, &call->in, 0);
    }
    if (out->at == MPI_PLACE) {
        call->args.count = own_bytes(call);
        leave_own_block(call);
        return 1;
    }
    if (!area_set(&call->out, out->at, out->count, out->type))
        return 0;
    call->args.out = area_stage(call, &call->out, 0);
    call->args.count = area_bytes(&call->out);
    return 1;
}

int prepare_scatter(struct call *call, struct side in, struct side out,
                    int root, MPI_Comm comm)
{
    if (!call_begin(call, COLL_SCATTER, comm))
        return 0;
    return set_scatter(call, &in, &out, root) ? 1 : refuse(call);
}

int prepare_scatterv(struct call *call, struct side in, struct side out,
                     int root, MPI_Comm comm)
{
    if (!call_begin(call, COLL_SCATTERV, comm))
        return 0;
    if (root == call->comm->rank && (!in.counts || !in.displs))
        return refuse(call);
    if (!set_scatter(call, &in, &out, root))
        return refuse(call);
    if (root == call->comm->rank)
        spread_in(call);
    return 1;
}
