/* SPDX-License-Identifier: BSD-3-Clause */
/* work.c - buffers of an operation, with guards, and all entry points. */
#include "tests/support/work.h"
#include "lib/device/region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 0xa5
#define SHIFT 64 /* where a buffer begins in its region */

int work_in_regions;

static int has_parts(const struct oracle_layout *l, const struct oracle_op *op,
                     int is_out)
{
    switch (op->collective) {
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
    case COLL_GATHER:
    case COLL_GATHERV:
        return is_out && l->n > 0;
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return !is_out && l->n > 0;
    default:
        return 0;
    }
}

static unsigned char *alloc(size_t len, int is_in_region)
{
    void *region;
    unsigned char *buf;

    if (is_in_region && !coll_mem_alloc(&region, SHIFT + len + WORK_GUARD))
        buf = (unsigned char *)region + SHIFT;
    else
        buf = malloc(len + WORK_GUARD);
    memset(buf, UNTOUCHED, len + WORK_GUARD);
    return buf;
}

static void release(unsigned char *buf)
{
    struct coll__region_place place;

    if (coll__region_find(buf, 1, &place))
        coll_mem_free(buf - SHIFT);
    else
        free(buf);
}

/* One buffer for both: the smaller one is this rank's part of the other. */
static void init_in_place(struct work *w, int rank)
{
    size_t size = coll_type_size(w->op.type);

    w->in = w->out = w->room = alloc(
        (w->out_at.len > w->in_at.len ? w->out_at.len : w->in_at.len) * size,
        work_in_regions);
    if (has_parts(&w->out_at, &w->op, 1))
        w->in += w->out_at.displs[rank] * size;
    if (has_parts(&w->in_at, &w->op, 0))
        w->out += w->in_at.displs[rank] * size;
}

/* Does the caller leave the displacements out? */
static int is_packed(const struct oracle_layout *l)
{
    size_t at = 0;

    for (int q = 0; q < l->n; q++) {
        if (l->displs[q] != at)
            return 0;
        at += l->counts[q];
    }
    return 1;
}

void work_init(struct work *w, const struct oracle_op *op, int rank,
               const struct oracle_handles *handles, int is_in_place)
{
    size_t size = coll_type_size(op->type);

    *w = (struct work){.op = *op, .handle = op->op};
    if (op->own)
        w->handle =
            op->own == OWN_SCALED ? COLL_SUM : handles->own[op->own][op->type];
    w->prescale = oracle_prescale(op, rank);
    oracle_layout(op, rank, 0, &w->in_at);
    oracle_layout(op, rank, 1, &w->out_at);
    w->are_packed = is_packed(&w->in_at) && is_packed(&w->out_at);
    w->out_len = w->out_at.len * size;
    w->is_in_place = is_in_place && w->in_at.n && w->out_at.n &&
                     op->collective != COLL_ALLTOALLV;
    if (w->is_in_place) {
        init_in_place(w, rank);
    } else {
        w->in = alloc(w->in_at.len * size, work_in_regions & WORK_IN);
        w->out = alloc(w->out_len, work_in_regions & WORK_OUT);
    }
    oracle_fill(op, rank, &w->in_at, w->in);
}

void work_fini(struct work *w)
{
    if (w->is_in_place) {
        release(w->room);
        return;
    }
    release(w->in);
    release(w->out);
}

/* ---- the check ----------------------------------------------------------- */

static int complain(const struct work *w, const struct world_rank *me,
                    const char *what, long i)
{
    const struct oracle_op *op = &w->op;

    fprintf(stderr, "rank %d of %d: %s of %zu %s, %s (own %d), root %d, in "
            "place %d, seed %u: %s %ld is wrong\n", me->rank, me->size,
            coll_collective_name(op->collective), op->count,
            coll_type_name(op->type), coll_op_name(op->op), (int)op->own,
            op->root, w->is_in_place, op->seed, what, i);
    return 1;
}

/* Is byte i of out within a part? */
static int is_within(const struct work *w, size_t i)
{
    size_t size = coll_type_size(w->op.type);

    for (int q = 0; q < w->out_at.n; q++)
        if (i >= w->out_at.displs[q] * size &&
            i < (w->out_at.displs[q] + w->out_at.counts[q]) * size)
            return 1;
    return 0;
}

/* The gaps are few and short, but only the v collectives have them. */
static long find_touched(const struct work *w)
{
    size_t size = coll_type_size(w->op.type), sum = 0;

    for (int q = 0; q < w->out_at.n; q++)
        sum += w->out_at.counts[q] * size;
    for (size_t i = 0; i < w->out_len && sum < w->out_len; i++)
        if (w->out[i] != UNTOUCHED && !is_within(w, i))
            return (long)i;
    for (size_t i = 0; i < WORK_GUARD; i++)
        if (w->out[w->out_len + i] != UNTOUCHED)
            return (long)(w->out_len + i);
    return -1;
}

int work_check(const struct work *w, const struct world_rank *me)
{
    int in_parts = has_parts(&w->in_at, &w->op, 0);
    long bad = oracle_verify(&w->op, me->rank, &w->out_at, w->out);

    if (bad >= 0)
        return complain(w, me, "element", bad);
    if (!w->is_in_place || in_parts) {
        bad = oracle_verify_in(&w->op, me->rank, &w->in_at,
                               w->is_in_place ? me->rank : -1, w->in);
        if (bad >= 0)
            return complain(w, me, "input element", bad);
    }
    if (w->is_in_place && in_parts)
        return 0; /* what lies behind out is in */
    bad = find_touched(w);
    return bad >= 0 ? complain(w, me, "byte between or behind", bad) : 0;
}

/* ---- the calls ----------------------------------------------------------- */

struct coll_args work_args(const struct work *w)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = w->op.collective,
                             .type = w->op.type,
                             .op = w->handle,
                             .root = w->op.root,
                             .in = w->in,
                             .out = w->out,
                             .count = w->op.count,
                             .prescale = w->prescale,
                             .postscale = oracle_postscale(&w->op)};
    int is_packed = w->are_packed;

    switch (w->op.collective) {
    case COLL_ALLTOALLV:
        args.in_counts = w->in_at.counts;
        args.in_displs = is_packed ? NULL : w->in_at.displs;
        args.out_counts = w->out_at.counts;
        args.out_displs = is_packed ? NULL : w->out_at.displs;
        break;
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        args.count = w->in_at.counts[0];
        args.out_counts = w->out_at.counts;
        args.out_displs = is_packed ? NULL : w->out_at.displs;
        break;
    case COLL_REDUCE_SCATTERV:
        args.in_counts = w->in_at.counts;
        break;
    case COLL_SCATTERV:
        args.count = w->out_at.counts[0];
        args.in_counts = w->in_at.counts;
        args.in_displs = is_packed ? NULL : w->in_at.displs;
        break;
    default:
        break;
    }
    return args;
}

static int call_v(const struct coll_args *a, struct coll_comm *comm)
{
    switch (a->collective) {
    case COLL_ALLGATHERV:
        return coll_allgatherv(a->in, a->out, a->out_counts, a->out_displs,
                               a->type, comm, a->stream);
    case COLL_REDUCE_SCATTERV:
        return coll_reduce_scatterv(a->in, a->out, a->in_counts, a->type, a->op,
                                    comm, a->stream);
    case COLL_ALLTOALLV:
        return coll_alltoallv(a->in, a->in_counts, a->in_displs, a->out,
                              a->out_counts, a->out_displs, a->type, comm,
                              a->stream);
    case COLL_GATHERV:
        return coll_gatherv(a->in, a->count, a->out, a->out_counts,
                            a->out_displs, a->type, a->root, comm, a->stream);
    case COLL_SCATTERV:
        return coll_scatterv(a->in, a->in_counts, a->in_displs, a->out,
                             a->count, a->type, a->root, comm, a->stream);
    default:
        return coll_barrier(comm, a->stream);
    }
}

int work_call_with(const struct coll_args *a, struct coll_comm *comm)
{
    switch (a->collective) {
    case COLL_ALLREDUCE:
        return coll_allreduce(a->in, a->out, a->count, a->type, a->op, comm,
                              a->stream);
    case COLL_BROADCAST:
        return coll_broadcast(a->in, a->out, a->count, a->type, a->root, comm,
                              a->stream);
    case COLL_REDUCE:
        return coll_reduce(a->in, a->out, a->count, a->type, a->op, a->root,
                           comm, a->stream);
    case COLL_ALLGATHER:
        return coll_allgather(a->in, a->out, a->count, a->type, comm,
                              a->stream);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(a->in, a->out, a->count, a->type, a->op,
                                   comm, a->stream);
    case COLL_ALLTOALL:
        return coll_alltoall(a->in, a->out, a->count, a->type, comm, a->stream);
    case COLL_SCAN:
        return coll_scan(a->in, a->out, a->count, a->type, a->op, comm,
                         a->stream);
    case COLL_EXSCAN:
        return coll_exscan(a->in, a->out, a->count, a->type, a->op, comm,
                           a->stream);
    case COLL_GATHER:
        return coll_gather(a->in, a->out, a->count, a->type, a->root, comm,
                           a->stream);
    case COLL_SCATTER:
        return coll_scatter(a->in, a->out, a->count, a->type, a->root, comm,
                            a->stream);
    default:
        return call_v(a, comm);
    }
}

int work_call(const struct work *w, struct coll_comm *comm)
{
    struct coll_args args = work_args(w);

    return work_call_with(&args, comm);
}
