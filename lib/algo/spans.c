/* SPDX-License-Identifier: BSD-3-Clause */
/* spans.c - how vectors are cut into blocks of whole elements. */
#include "lib/algo/algo.h"
#include "lib/util/util.h"

struct coll__span coll__cuts(const struct coll__problem *pb,
                             struct coll__span span, int n, int from, int to)
{
    size_t size = coll_type_size(pb->type), count = span.len / size;
    size_t base = count / (size_t)n, longer = count % (size_t)n;
    size_t i = (size_t)from, j = (size_t)to;
    size_t begin = i * base + (i < longer ? i : longer);
    size_t end = j * base + (j < longer ? j : longer);

    return (struct coll__span){span.buf, span.off + begin * size,
                               (end - begin) * size};
}

struct coll__span coll__cut(const struct coll__problem *pb,
                            struct coll__span span, int n, int b)
{
    return coll__cuts(pb, span, n, b, b + 1);
}

struct coll__span coll__block(const struct coll__problem *pb,
                              enum coll__buf buf, int b)
{
    int p = pb->nranks;

    return coll__cut(pb, coll__whole(pb, buf), p, (b % p + p) % p);
}

void coll__cut_counts(const struct coll__problem *pb, struct coll__span span,
                      int n, int owners, size_t *counts)
{
    size_t size = coll_type_size(pb->type);

    for (int i = 0; i < n; i++) {
        int from = i < owners ? i : owners, to = i < owners ? i + 1 : owners;
        struct coll__span part = coll__cuts(pb, span, owners, from, to);

        counts[i] = part.len / size;
        counts[n + i] = (part.off - span.off) / size;
    }
}

size_t coll__longest_part(const struct coll__problem *pb, enum coll__buf buf)
{
    const size_t *counts = buf == BUF_IN ? pb->in_counts : pb->out_counts;
    size_t longest = coll__part(pb, buf, 0).len;

    for (int r = 1; counts && r < pb->nranks; r++)
        longest = max_size(longest, coll__part(pb, buf, r).len);
    return longest;
}

double coll__mean_part(const struct coll__problem *pb, enum coll__buf buf)
{
    const size_t *counts = buf == BUF_IN ? pb->in_counts : pb->out_counts;
    double n = 0;

    switch (pb->collective) {
    case COLL_ALLTOALLV:
    case COLL_GATHERV:
    case COLL_SCATTERV:
        return 0;
    case COLL_ALLGATHERV:
    case COLL_REDUCE_SCATTERV:
        for (int r = 0; r < pb->nranks; r++)
            n += (double)counts[r];
        return n * (double)coll_type_size(pb->type) / pb->nranks;
    default:
        return (double)coll__problem_bytes(pb);
    }
}

struct coll__span coll__own_in(const struct coll__problem *pb)
{
    enum coll__buf buf = pb->in_place ? BUF_OUT : BUF_IN;
    enum coll__shape shape = coll__problem_shape(pb, buf);

    return shape == SHAPE_PARTS ? coll__part(pb, buf, pb->rank)
                                : coll__whole(pb, buf);
}
