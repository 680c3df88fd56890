/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.c - operations in pieces. */
#include "lib/stream/cut.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

static int has_parts(const struct coll__problem *pb, enum coll__buf buf)
{
    return coll__problem_shape(pb, buf) == SHAPE_PARTS;
}

/* How many parts of a piece must fit the slot?  The same on every rank, even if a rank
 * has only its own part. */
static size_t count_parts(const struct coll__problem *pb)
{
    size_t n = (size_t)pb->nranks;

    switch (pb->collective) {
    case COLL_ALLREDUCE:
    case COLL_BROADCAST:
    case COLL_REDUCE:
    case COLL_BARRIER:
    case COLL_SEND:
    case COLL_RECV:
        return 1;
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
        return 2 * n;
    default:
        return n;
    }
}

/* Return the largest of a rank's parts, in elements. */
static size_t largest(const struct coll__problem *pb)
{
    size_t most = pb->count;

    for (int r = 0; r < pb->nranks; r++) {
        if (pb->in_counts)
            most = max_size(most, pb->in_counts[r]);
        if (pb->out_counts)
            most = max_size(most, pb->out_counts[r]);
    }
    return most;
}

/* Choose as many elements as fit; several parts get whole cache lines, if possible. */
static size_t choose_most(const struct coll__cut *cut)
{
    size_t parts = count_parts(&cut->pb), line = CACHE_LINE / cut->size;
    size_t most = cut->len / parts / cut->size;

    if (cut->unit && most < cut->pb.count)
        return most - most % cut->unit;
    return parts > 1 && most > line ? most - most % line : most;
}

static int copy_numbers(struct coll__cut *cut)
{
    struct coll__problem *pb = &cut->pb;
    const size_t **arrays[] = {&pb->in_counts, &pb->in_displs, &pb->out_counts,
                               &pb->out_displs};
    size_t n = (size_t)pb->nranks, *to;

    if (!pb->in_counts && !pb->out_counts)
        return COLL_OK;
    to = cut->numbers = malloc(8 * n * sizeof(*to));
    if (!to)
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++, to += n)
        if (*arrays[i])
            *arrays[i] = memcpy(to, *arrays[i], n * sizeof(*to));
    return COLL_OK;
}

size_t coll__cut_unit(size_t slot_len, enum coll_type type)
{
    size_t size = coll_type_size(type);

    return max_size(slot_len / COLL__CUT_UNITS / size, 1) * size;
}

int coll__cut_init(struct coll__cut *cut, const struct coll__problem *pb,
                   size_t slot_len, size_t at, size_t len)
{
    size_t count = largest(pb), pieces;

    *cut = (struct coll__cut){
        .pb = *pb, .size = coll_type_size(pb->type), .at = at, .len = len};
    if (coll__is_p2p(pb->collective))
        cut->unit = coll__cut_unit(slot_len, pb->type) / cut->size;
    cut->most = choose_most(cut);
    if (!cut->most && count)
        return COLL_ERR_UNSUPPORTED;
    pieces = cut->most ? count / cut->most + (count % cut->most != 0) : 1;
    if (pieces > INT32_MAX) /* a stage compares its numbers modulo 2^32 */
        return COLL_ERR_UNSUPPORTED;
    cut->n = (uint32_t)max_size(pieces, 1);
    return copy_numbers(cut);
}

void coll__cut_fini(struct coll__cut *cut)
{
    free(cut->numbers);
    cut->numbers = NULL;
}

/* ---- pieces ---------------------------------------------------------------- */

/* How many elements of a part of `count` elements are in piece k? */
static size_t clamp(const struct coll__cut *cut, size_t count, uint32_t k)
{
    size_t first = (size_t)k * cut->most;

    return count > first ? min_size(count - first, cut->most) : 0;
}

/* The parts of a piece, packed. */
static void cut_parts(const struct coll__cut *cut, uint32_t k,
                      const size_t *whole, size_t *counts, size_t *displs)
{
    size_t sum = 0;

    for (int r = 0; r < cut->pb.nranks; r++) {
        counts[r] = clamp(cut, whole[r], k);
        displs[r] = sum;
        sum += counts[r];
    }
}

/* Return the place of part r among the packed parts of piece k, in elements. */
static size_t packed_at(const struct coll__cut *cut, uint32_t k,
                        enum coll__buf buf, int r)
{
    const struct coll__problem *pb = &cut->pb;
    const size_t *counts = buf == BUF_IN ? pb->in_counts : pb->out_counts;
    size_t sum = 0;

    if (!counts)
        return (size_t)r * clamp(cut, pb->count, k);
    for (int i = 0; i < r; i++)
        sum += clamp(cut, counts[i], k);
    return sum;
}

/* Return where a buffer begins in the slot.  If only the other buffer has parts, this
 * buffer is the rank's own part of the other. */
static size_t begin_of(const struct coll__cut *cut, uint32_t k,
                       enum coll__buf buf)
{
    enum coll__buf other = buf == BUF_IN ? BUF_OUT : BUF_IN;
    int has_own = has_parts(&cut->pb, buf);
    int has_other = has_parts(&cut->pb, other);

    if (has_own && has_other)
        return cut->at + (buf == BUF_OUT ? cut->len / 2 : 0);
    if (has_own || !has_other)
        return cut->at;
    return cut->at + packed_at(cut, k, other, cut->pb.rank) * cut->size;
}

void coll__cut_piece(struct coll__cut *cut, uint32_t k,
                     struct coll__problem *pb, size_t *in, size_t *out)
{
    size_t n = (size_t)cut->pb.nranks, *own = cut->numbers + 4 * n;

    *pb = cut->pb;
    pb->count = clamp(cut, pb->count, k);
    if (pb->in_counts) {
        cut_parts(cut, k, cut->pb.in_counts, own, own + n);
        pb->in_counts = own;
        pb->in_displs = own + n;
    }
    if (pb->out_counts) {
        cut_parts(cut, k, cut->pb.out_counts, own + 2 * n, own + 3 * n);
        pb->out_counts = own + 2 * n;
        pb->out_displs = own + 3 * n;
    }
    *in = begin_of(cut, k, BUF_IN);
    *out = begin_of(cut, k, BUF_OUT);
}

/* ---- runs of bytes --------------------------------------------------------- */

/* Part r of piece k, maybe of no bytes. */
static struct coll__cut_span part_of(const struct coll__cut *cut, uint32_t k,
                                     enum coll__buf buf, int r)
{
    const struct coll__problem *pb = &cut->pb;
    size_t first = (size_t)k * cut->most * cut->size;
    struct coll__span whole = {buf, 0, pb->count * cut->size};
    size_t here = begin_of(cut, k, buf);

    if (has_parts(pb, buf)) {
        whole = coll__part(pb, buf, r);
        here += packed_at(cut, k, buf, r) * cut->size;
    }
    return (struct coll__cut_span){whole.off + first, here,
                                   clamp(cut, whole.len / cut->size, k) *
                                       cut->size};
}

static int follows(const struct coll__cut_span *a,
                   const struct coll__cut_span *b)
{
    return a->there + a->len == b->there && a->here + a->len == b->here;
}

int coll__cut_next(const struct coll__cut *cut, uint32_t k, enum coll__buf buf,
                   int *part, struct coll__cut_span *span)
{
    enum coll__shape shape = coll__problem_shape(&cut->pb, buf);
    int n = shape == SHAPE_PARTS ? cut->pb.nranks : shape == SHAPE_WHOLE;

    span->len = 0;
    for (; *part < n; ++*part) {
        struct coll__cut_span next = part_of(cut, k, buf, *part);

        if (!next.len)
            continue;
        if (!span->len)
            *span = next;
        else if (follows(span, &next))
            span->len += next.len;
        else
            break;
    }
    return span->len != 0;
}
