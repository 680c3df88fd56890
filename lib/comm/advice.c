/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.c - see advice.h. */
#include "lib/comm/advice.h"

/* What can differ between two calls, as bits. */
enum {
    COUNT = 1,
    TYPE = 2,
    OP = 4,
    ROOT = 8,
    PLACE = 16,
    CALL = 32,
    SCALE = 64
};

/* With a postscale, a signature has half of the count. */
static int counts_differ(const struct coll__signature *a,
                         const struct coll__signature *b)
{
    return (a->op | b->op) & COLL__SIGNATURE_SCALED
               ? (uint32_t)a->count != (uint32_t)b->count
               : a->count != b->count;
}

static int scales_differ(const struct coll__signature *a,
                         const struct coll__signature *b)
{
    return (a->op ^ b->op) & COLL__SIGNATURE_SCALED ||
           coll__signature_scale(a) != coll__signature_scale(b);
}

static int differences(const struct coll__signature *a,
                       const struct coll__signature *b)
{
    int is_other = a->collective != b->collective || a->seq != b->seq ||
                   a->series != b->series ||
                   coll__is_p2p((enum coll_collective)a->collective);
    int are_parts_other = a->collective == COLL_ALLREDUCE &&
                          a->series != SERIES_COMPARED && a->root != b->root;

    return (is_other || are_parts_other ? CALL : 0) |
           (counts_differ(a, b) ? COUNT : 0) | (a->type != b->type ? TYPE : 0) |
           ((a->op ^ b->op) & ~COLL__SIGNATURE_SCALED ? OP : 0) |
           (scales_differ(a, b) ? SCALE : 0) |
           (coll__signature_root(a) != coll__signature_root(b) ? ROOT : 0) |
           (coll__signature_places(a) != coll__signature_places(b) ? PLACE : 0);
}

const char *coll__advice(const struct coll__signature *a,
                         const struct coll__signature *b)
{
    switch (differences(a, b)) {
    case COUNT:
        return coll__has_counts((enum coll_collective)a->collective)
                   ? "all ranks must pass the same counts"
                   : "all ranks must pass the same count";
    case TYPE:
        return "all ranks must pass the same type";
    case OP:
        return "all ranks must pass the same op";
    case SCALE:
        return "all ranks must pass the same postscale";
    case ROOT:
    case ROOT | PLACE: /* the place depends on the root, too */
        return "all ranks must pass the same root";
    case PLACE:
        return "all ranks must pass the same place of a registered buffer";
    default:
        return COLL__SAME_CALLS;
    }
}
