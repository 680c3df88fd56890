/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.c - cut buffers at the ends of all spans.
 *
 * Most spans share their ends with others.  So each distinct end first gets a number;
 * only these are sorted, digit by digit.  An end's place in the sorted order is its
 * segment's number.
 */
#include "lib/plan/flow.h"
#include "lib/plan/intern.h"
#include "lib/trace/log.h"

#include <stdlib.h>

#define DIGIT 8 /* bits */

struct cut {
    uint64_t key; /* buffers one behind the other */
    int number;   /* in order of first use */
};

struct cutter {
    struct coll__numbers numbers;
    struct cut *cuts; /* [cap]: cut number 0, 1 ... */
    int cap;
    const int *is_written; /* flow->is_written */
};

/* ---- collect ------------------------------------------------------------- */

/* Return the number of the cut at an offset; -1 without memory. */
static int cut_at(struct cutter *c, enum coll__buf buf, size_t off)
{
    uint64_t key = (uint64_t)buf << 62 | off;
    int number = coll__number(&c->numbers, key);

    if (number >= c->cap) {
        int cap = 2 * c->cap + 64;
        struct cut *more = realloc(c->cuts, (size_t)cap * sizeof(*more));

        if (!more)
            return -1;
        c->cuts = more;
        c->cap = cap;
    }
    if (number >= 0)
        c->cuts[number] = (struct cut){key, number};
    return number;
}

/* Number both ends of a span. */
static int collect(struct cutter *c, const struct coll__span *span,
                   struct coll__segments *ends)
{
    if (!span->len || !c->is_written[span->buf])
        return COLL_OK;
    ends->from = cut_at(c, span->buf, span->off);
    ends->to = cut_at(c, span->buf, span->off + span->len);
    return ends->from < 0 || ends->to < 0 ? COLL_ERR_NOMEM : COLL_OK;
}

/* Does step i read what the step before it has written?  Most steps do. */
static int reads_last(const struct coll__plan *plan, int i)
{
    const struct coll__step *step = &plan->steps[i], *last = step - 1;

    return i && coll__step_writes_dst(last->kind) &&
           coll__same_span(&step->src, &last->dst);
}

/* Does it combine in place? */
static int reads_own_dst(const struct coll__step *step)
{
    return step->kind == STEP_RECV_REDUCE &&
           coll__same_span(&step->src, &step->dst);
}

/* Number all ends.  Cut 0 is offset 0; empty spans use it. */
static int collect_all(struct cutter *c, const struct coll__plan *plan,
                       struct coll__touch *touches)
{
    /* blocks meet, and most are touched several times */
    int rc = coll__numbers_init(&c->numbers, plan->n_steps / 2);

    if (!rc && cut_at(c, BUF_IN, 0) < 0)
        rc = COLL_ERR_NOMEM;
    for (int i = 0; i < plan->n_steps && !rc; i++) {
        const struct coll__step *step = &plan->steps[i];

        touches[i] = (struct coll__touch){{0, 0}, {0, 0}};
        if (coll__step_writes_dst(step->kind))
            rc = collect(c, &step->dst, &touches[i].dst);
        if (!rc && coll__step_reads_src(step->kind)) {
            if (reads_own_dst(step))
                touches[i].src = touches[i].dst;
            else if (reads_last(plan, i))
                touches[i].src = touches[i - 1].dst;
            else
                rc = collect(c, &step->src, &touches[i].src);
        }
    }
    return rc;
}

/* ---- sort ---------------------------------------------------------------- */

/* Sort n cuts by one digit; equal cuts keep their order. */
static void sort_digit(const struct cut *from, struct cut *to, int n, int shift)
{
    int at[(1 << DIGIT) + 1] = {0};

    for (int i = 0; i < n; i++)
        at[(from[i].key >> shift & ((1 << DIGIT) - 1)) + 1]++;
    for (int d = 0; d < 1 << DIGIT; d++)
        at[d + 1] += at[d];
    for (int i = 0; i < n; i++)
        to[at[from[i].key >> shift & ((1 << DIGIT) - 1)]++] = from[i];
}

/* Sort the cuts and fill in the place of each one. */
static int place_all(struct cutter *c, int *places)
{
    int n = c->numbers.n;
    struct cut *other = malloc((size_t)n * sizeof(*other)), *swap;
    uint64_t differing = 0;

    if (!other)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < n; i++)
        differing |= c->cuts[i].key ^ c->cuts[0].key;
    for (int shift = 0; shift < 64; shift += DIGIT) {
        if (!(differing >> shift & ((1 << DIGIT) - 1)))
            continue;
        sort_digit(c->cuts, other, n, shift);
        swap = c->cuts;
        c->cuts = other;
        other = swap;
    }
    free(other);
    for (int i = 0; i < n; i++)
        places[c->cuts[i].number] = i;
    return COLL_OK;
}

/* ---- both ---------------------------------------------------------------- */

static void find_written(struct coll__flow *flow, const struct coll__plan *plan)
{
    for (int b = 0; b < N_BUFS; b++)
        flow->is_written[b] = 0;
    for (int i = 0; i < plan->n_steps; i++)
        if (coll__step_writes_dst(plan->steps[i].kind))
            flow->is_written[plan->steps[i].dst.buf] = 1;
}

static void renumber(struct coll__segments *ends, const int *places)
{
    *ends = (struct coll__segments){places[ends->from], places[ends->to]};
}

static int number_all(struct cutter *c, struct coll__touch *touches,
                      int n_steps)
{
    int *places = malloc((size_t)c->numbers.n * sizeof(*places));
    int rc = places ? place_all(c, places) : COLL_ERR_NOMEM;

    for (int i = 0; i < n_steps && !rc; i++) {
        renumber(&touches[i].dst, places);
        renumber(&touches[i].src, places);
    }
    free(places);
    return rc;
}

int coll__flow_need(struct coll__flow *flow, const struct coll__plan *plan)
{
    struct cutter c = {.is_written = flow->is_written};
    int rc = COLL_ERR_NOMEM, n = plan->n_steps;

    if (flow->touches)
        return COLL_OK;
    find_written(flow, plan);
    flow->touches = malloc(((size_t)n + 1) * sizeof(*flow->touches));
    if (flow->touches)
        rc = collect_all(&c, plan, flow->touches);
    if (!rc)
        rc = number_all(&c, flow->touches, n);
    flow->n_segments = c.numbers.n;
    coll__numbers_fini(&c.numbers);
    free(c.cuts);
    if (rc) {
        log_error("plan", "no memory to cut the buffers of %d steps", n);
        coll__flow_fini(flow);
    }
    return rc;
}

void coll__flow_compact(struct coll__flow *flow, struct coll__plan *plan)
{
    int kept = 0;

    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].peer != COLL__DROPPED)
            flow->touches[kept++] = flow->touches[i];
    coll__plan_compact(plan);
}

void coll__flow_fini(struct coll__flow *flow)
{
    free(flow->touches);
    flow->touches = NULL;
}
