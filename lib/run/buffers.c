/* SPDX-License-Identifier: BSD-3-Clause */
/* buffers.c - check a caller's buffers: are they NULL, in place, or do they overlap by
 * mistake? */
#include "lib/plan/plan.h"
#include "lib/run/args.h"
#include "lib/run/parts.h"
#include "lib/type/signature.h"

/* A run of bytes. */
struct extent {
    uintptr_t begin, end;
};

static struct extent extent_of(const struct coll__problem *pb,
                               enum coll__buf buf, const void *base)
{
    uintptr_t begin = (uintptr_t)base;

    return (struct extent){begin, begin + coll__problem_len(pb, buf)};
}

static int meet(struct extent a, struct extent b)
{
    return a.begin < a.end && b.begin < b.end && a.begin < b.end &&
           b.begin < a.end;
}

/* Return the parts of a buffer, or all of it as one. */
static struct coll__parts parts_of(const struct coll__problem *pb,
                                   enum coll__buf buf, const void *base)
{
    static const size_t nowhere;
    struct coll__parts parts = {.base = (uintptr_t)base,
                                .size = coll_type_size(pb->type),
                                .counts = &pb->count,
                                .displs = &nowhere,
                                .n = 1};

    if (coll__problem_shape(pb, buf) == SHAPE_PARTS) {
        parts.counts = buf == BUF_IN ? pb->in_counts : pb->out_counts;
        parts.displs = buf == BUF_IN ? pb->in_displs : pb->out_displs;
        parts.n = pb->nranks;
    }
    return parts;
}

/* Do in and out share bytes that the collective uses?  Only a collective whose name
 * ends in v leaves gaps, so only there two buffers may interleave without sharing a
 * byte. */
static int overlap(const struct coll__problem *pb, const void *in,
                   const void *out, struct coll__sorter *sorter)
{
    struct coll__parts of_in, of_out;

    if (!meet(extent_of(pb, BUF_IN, in), extent_of(pb, BUF_OUT, out)))
        return 0;
    if (!coll__has_counts(pb->collective))
        return 1;
    of_in = parts_of(pb, BUF_IN, in);
    of_out = parts_of(pb, BUF_OUT, out);
    return coll__parts_meet(&of_in, &of_out, sorter);
}

/* In place means that this rank's own part of the data is already where the result has
 * it. */
static int is_in_place(const struct coll__problem *pb, const void *in,
                       const void *out)
{
    uintptr_t from = (uintptr_t)in, to = (uintptr_t)out;
    int has_in_parts = coll__problem_shape(pb, BUF_IN) == SHAPE_PARTS;
    int has_out_parts = coll__problem_shape(pb, BUF_OUT) == SHAPE_PARTS;

    if (pb->collective == COLL_ALLTOALLV)
        return 0;
    if (has_out_parts && !has_in_parts)
        to += coll__part(pb, BUF_OUT, pb->rank).off;
    if (has_in_parts && !has_out_parts)
        from += coll__part(pb, BUF_IN, pb->rank).off;
    return from == to;
}

static const char *overlap_remedy(enum coll_collective collective)
{
    switch (collective) {
    case COLL_ALLGATHER:
    case COLL_GATHER:
        return "in and out overlap; in place means in == out + rank * count, "
               "else keep them apart";
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        return "in and out overlap; in place means in == out + displs[rank], "
               "else keep them apart";
    case COLL_REDUCE_SCATTER:
    case COLL_SCATTER:
        return "in and out overlap; in place means out == in + rank * count, "
               "else keep them apart";
    case COLL_REDUCE_SCATTERV:
    case COLL_SCATTERV:
        return "in and out overlap; in place means out == this rank's block "
               "of in, else keep them apart";
    case COLL_ALLTOALLV:
        return "in and out overlap; it is never in place, keep them apart";
    default:
        return "in and out overlap; pass the same pointer (in place) or keep "
               "them apart";
    }
}

int coll__buffers_check(const struct coll_args *args,
                        struct coll__sorter *sorter, struct coll__problem *pb)
{
    size_t in_len = coll__problem_len(pb, BUF_IN);
    size_t out_len = coll__problem_len(pb, BUF_OUT);

    if (in_len && !args->in)
        return coll__args_wrong(args, "in is NULL");
    if (out_len && !args->out)
        return coll__args_wrong(args, "out is NULL");
    if (!in_len || !out_len)
        return COLL_OK;
    pb->in_place = is_in_place(pb, args->in, args->out);
    if (!pb->in_place && overlap(pb, args->in, args->out, sorter))
        return coll__args_wrong(args, overlap_remedy(pb->collective));
    return COLL_OK;
}
