/* SPDX-License-Identifier: BSD-3-Clause */
/* buffers.c - judge where a caller's buffers lie: there at all, in place, or
 * one over the other by mistake. */
#include "lib/api/comm.h"

/* A run of bytes. */
struct extent {
    uintptr_t begin, end;
};

static struct extent extent_of(const void *base, const struct coll__span *span)
{
    uintptr_t begin = (uintptr_t)base + span->off;

    return (struct extent){begin, begin + span->len};
}

static int meet(struct extent a, struct extent b)
{
    return a.begin < a.end && b.begin < b.end && a.begin < b.end &&
           b.begin < a.end;
}

/* Piece i of a buffer: a part, or all of it. */
static struct coll__span piece(const struct coll__problem *pb,
                               enum coll__buf buf, int i)
{
    if (coll__problem_shape(pb, buf) == SHAPE_PARTS)
        return coll__part(pb, buf, i);
    return (struct coll__span){buf, 0, coll__problem_bytes(pb)};
}

static int n_pieces(const struct coll__problem *pb, enum coll__buf buf)
{
    return coll__problem_shape(pb, buf) == SHAPE_PARTS ? pb->nranks : 1;
}

/* Do they share bytes that the collective mentions?  in and out that lie apart
 * as a whole need no look at their parts. */
static int overlap(const struct coll__problem *pb, const void *in, void *out)
{
    struct coll__span all_in = {BUF_IN, 0, coll__problem_len(pb, BUF_IN)};
    struct coll__span all_out = {BUF_OUT, 0, coll__problem_len(pb, BUF_OUT)};

    if (!meet(extent_of(in, &all_in), extent_of(out, &all_out)))
        return 0;
    for (int i = 0; i < n_pieces(pb, BUF_IN); i++)
        for (int o = 0; o < n_pieces(pb, BUF_OUT); o++) {
            struct coll__span from = piece(pb, BUF_IN, i);
            struct coll__span to = piece(pb, BUF_OUT, o);

            if (meet(extent_of(in, &from), extent_of(out, &to)))
                return 1;
        }
    return 0;
}

/* In place means that this rank's own part is where it belongs. */
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

int coll__buffers_check(const struct coll_args *args, struct coll__problem *pb)
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
    if (!pb->in_place && overlap(pb, args->in, args->out))
        return coll__args_wrong(args, overlap_remedy(pb->collective));
    return COLL_OK;
}
