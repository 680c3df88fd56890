/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - what OUT must hold, byte by byte, for each collective: which ranks'
 * contributions, which of their elements, divided or not, and combined in which order. */
#include "lib/proof/judge.h"
#include "lib/algo/algo.h"

#include <stdarg.h>
#include <stdio.h>

static int fault(const struct coll__verdict *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fault(const struct coll__verdict *v, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(v->why, v->why_len, format, args);
    va_end(args);
    return COLL_ERR_INVALID;
}

static int judge_piece(const struct coll__verdict *v, size_t off,
                       const struct coll__piece *piece, int set, size_t from)
{
    const struct coll__problem *pb = &v->pbs[v->rank];
    int reduces = coll__reduces(pb->collective);

    if (piece->set != set || piece->from != from ||
        piece->is_scaled != (reduces && pb->op == COLL_AVG))
        return fault(v, "rank %d: OUT[%zu,%zu) is not what the collective "
                     "defines", v->rank, off, off + piece->len);
    if (reduces && pb->order != ORDER_FREE && piece->tree != v->canonical)
        return fault(v, "rank %d: OUT[%zu,%zu) was not combined in the "
                     "canonical order", v->rank, off, off + piece->len);
    return COLL_OK;
}

/* Check that all of a span of OUT is this set, from byte `from` of the inputs on. */
static int judge_span(const struct coll__verdict *v, struct coll__span span,
                      int set, size_t from)
{
    int rc = coll__memory_read(v->out, span.off, span.len, v->scratch);

    if (rc == COLL_ERR_NOMEM) {
        fault(v, "no memory to judge rank %d's OUT", v->rank);
        return rc;
    }
    if (rc)
        return fault(v, "rank %d leaves a part of OUT unwritten", v->rank);
    for (int i = 0; i < v->scratch->n && rc == COLL_OK; i++) {
        const struct coll__piece *piece = &v->scratch->pieces[i];

        rc = judge_piece(v, span.off + piece->off, piece, set,
                         from + piece->off);
    }
    return rc;
}

/* Check that no step has written into the gaps between parts, which are the caller's.
 * Written bytes stay written, so it is enough to count them. */
static int judge_gaps(const struct coll__verdict *v)
{
    const struct coll__problem *pb = &v->pbs[v->rank];
    size_t written = 0, wanted = 0;

    for (int i = 0; i < v->out->n; i++)
        written += v->out->pieces[i].len;
    for (int q = 0; q < pb->nranks; q++)
        wanted += coll__part(pb, BUF_OUT, q).len;
    return written > wanted
               ? fault(v, "rank %d writes between the parts of OUT", v->rank)
               : COLL_OK;
}

/* Check each part of OUT. */
static int judge_parts(const struct coll__verdict *v)
{
    const struct coll__problem *pb = &v->pbs[v->rank];
    int is_exchange = pb->collective == COLL_ALLTOALL ||
                      pb->collective == COLL_ALLTOALLV;
    int rc = COLL_OK;

    for (int q = 0; q < pb->nranks && rc == COLL_OK; q++)
        rc = judge_span(v, coll__part(pb, BUF_OUT, q), v->one[q],
                        is_exchange
                            ? coll__part(&v->pbs[q], BUF_IN, v->rank).off
                            : 0);
    return rc ? rc : judge_gaps(v);
}

static int judge_whole(const struct coll__verdict *v)
{
    const struct coll__problem *pb = &v->pbs[v->rank];
    struct coll__span out = coll__whole(pb, BUF_OUT);

    switch (pb->collective) {
    case COLL_BROADCAST:
    case COLL_RECV:
        return judge_span(v, out, v->one[pb->root], 0);
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return judge_span(v, out, v->one[pb->root],
                          coll__part(&v->pbs[pb->root], BUF_IN, v->rank).off);
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
        return judge_span(v, out, v->all,
                          coll__part(pb, BUF_IN, v->rank).off);
    default:
        return judge_span(v, out, v->all, 0);
    }
}

int coll__judge_out(const struct coll__verdict *v)
{
    switch (coll__problem_shape(&v->pbs[v->rank], BUF_OUT)) {
    case SHAPE_PARTS:
        return judge_parts(v);
    case SHAPE_WHOLE:
        return judge_whole(v);
    case SHAPE_NONE:
        break;
    }
    return COLL_OK;
}
