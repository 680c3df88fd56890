/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - run all ranks' plans symbolically and check the result.
 *
 * Events happen in a random order that keeps each plan's edges and the order of
 * messages.  A message passes in one event, once the send and the receive are both
 * ready.  This is the case without any buffering, so plans that do not get stuck here
 * do not get stuck on any transport.  (Which events are possible depends only on
 * counters that never fall, so if one order finishes, all orders do.)
 */
#include "lib/algo/algo.h"
#include "lib/proof/bounds.h"
#include "lib/proof/judge.h"
#include "lib/proof/symbolic.h"
#include "lib/proof/proof.h"
#include "lib/proof/sets.h"
#include "lib/proof/trees.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct rank {
    const struct coll__plan *plan;
    struct coll__memory mem[N_BUFS];
    int *left;      /* [n_steps]: edges still to come */
    int *next;      /* [n_steps]: the next step on the same lane, -1 last */
    int *head[2];   /* [p] each: the first step of each lane that is not done, by
                     * direction */
    int n_done;
};

struct event {
    int rank, step; /* of a message: the send */
};

struct checker {
    const struct coll__problem *pbs; /* [p] */
    int p, adds_up; /* each contribution may be counted once only */
    struct rank *ranks;
    struct coll__sets sets;
    struct coll__trees trees;
    int *one;            /* [p]: the set of one rank */
    /* the set of all ranks; the tree of the order that the problem demands, or 0 */
    int all, canonical;
    struct coll__memory what, had, now; /* of the step that runs */
    struct event *events;
    int n_events, cap_events;
    uint64_t random;
    /* Limits: the pieces that reads have met, and the different sets.  Useful plans
     * stay far below: they have a few parts a step, sometimes one for each rank. */
    size_t n_pieces, most_pieces;
    int most_sets;
    char *why;
    size_t why_len;
};

static int fault(struct checker *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fault(struct checker *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(c->why, c->why_len, format, args);
    va_end(args);
    return COLL_ERR_INVALID;
}

static int no_memory(struct checker *c)
{
    snprintf(c->why, c->why_len, "no memory to check %d plans", c->p);
    return COLL_ERR_NOMEM;
}

/* ---- what a step does to memory ------------------------------------------ */

static int read_span(struct checker *c, int r, int step,
                     const struct coll__span *span, struct coll__memory *what)
{
    int rc = coll__memory_read(&c->ranks[r].mem[span->buf], span->off,
                               span->len, what);

    if (rc == COLL_ERR_NOMEM)
        return no_memory(c);
    c->n_pieces += (size_t)what->n;
    if (c->n_pieces > c->most_pieces)
        return fault(c, "rank %d step %d: the plans cut their data into too "
                     "many parts", r, step);
    return rc ? fault(c, "rank %d step %d reads bytes that nobody wrote", r,
                      step)
              : COLL_OK;
}

static int write_span(struct checker *c, int r, const struct coll__span *span,
                      const struct coll__memory *what)
{
    return coll__memory_write(&c->ranks[r].mem[span->buf], span->off,
                              span->len, what)
               ? no_memory(c)
               : COLL_OK;
}

/* Combine two pieces that start at the same offset, over the length of the shorter one,
 * and append the result to c->now. */
static int combine(struct checker *c, int r, int step,
                   const struct coll__piece *a, const struct coll__piece *b)
{
    struct coll__piece both = *a;

    if (a->from != b->from)
        return fault(c, "rank %d step %d combines different elements", r,
                     step);
    if (a->is_scaled || b->is_scaled)
        return fault(c, "rank %d step %d reduces what is already divided", r,
                     step);
    if (c->adds_up && coll__sets_meet(&c->sets, a->set, b->set))
        return fault(c, "rank %d step %d counts a contribution twice", r, step);
    if (b->len < both.len)
        both.len = b->len;
    if (c->sets.n > c->most_sets || c->trees.n > c->most_sets)
        return fault(c, "rank %d step %d: the plans combine too many groups of "
                     "ranks", r, step);
    both.set = coll__sets_union(&c->sets, a->set, b->set);
    if (c->pbs[0].order != ORDER_FREE)
        both.tree = coll__trees_pair(&c->trees, a->tree, b->tree);
    return both.set < 0 || both.tree < 0 || coll__memory_append(&c->now, &both)
               ? no_memory(c)
               : COLL_OK;
}

static void drop_front(struct coll__piece *piece, size_t n)
{
    piece->off += n;
    piece->from += n;
    piece->len -= n;
}

/* Set c->now to a combined with b; both cover the same bytes. */
static int combine_all(struct checker *c, int r, int step,
                       struct coll__memory *a, struct coll__memory *b)
{
    int i = 0, j = 0, rc = COLL_OK;

    c->now.n = 0;
    while (rc == COLL_OK && i < a->n && j < b->n) {
        struct coll__piece *x = &a->pieces[i], *y = &b->pieces[j];
        size_t n = x->len < y->len ? x->len : y->len;

        rc = combine(c, r, step, x, y);
        drop_front(x, n);
        drop_front(y, n);
        i += !x->len;
        j += !y->len;
    }
    return rc;
}

/* Set dst to op(operand, what) or op(what, operand).  The operand is dst, or the src
 * of a RECV_REDUCE. */
static int reduce_into(struct checker *c, int r, int i)
{
    const struct coll__step *step = &c->ranks[r].plan->steps[i];
    const struct coll__span *operand =
        step->kind == STEP_RECV_REDUCE ? &step->src : &step->dst;
    int rc = read_span(c, r, i, operand, &c->had);

    if (rc == COLL_OK)
        rc = step->src_first ? combine_all(c, r, i, &c->what, &c->had)
                             : combine_all(c, r, i, &c->had, &c->what);
    return rc ? rc : write_span(c, r, &step->dst, &c->now);
}

static int scale(struct checker *c, int r, int step,
                 const struct coll__span *dst)
{
    int rc = read_span(c, r, step, dst, &c->what);

    for (int i = 0; i < c->what.n && rc == COLL_OK; i++) {
        struct coll__piece *piece = &c->what.pieces[i];

        if (piece->is_scaled || piece->set != c->all)
            rc = fault(c, "rank %d step %d divides an incomplete sum", r, step);
        piece->is_scaled = 1;
    }
    return rc ? rc : write_span(c, r, dst, &c->what);
}

static int run_local(struct checker *c, int r, int i)
{
    const struct coll__step *step = &c->ranks[r].plan->steps[i];
    int rc;

    if (step->kind == STEP_ORDER)
        return COLL_OK;
    if (step->kind == STEP_SCALE)
        return scale(c, r, i, &step->dst);
    rc = read_span(c, r, i, &step->src, &c->what);
    if (rc)
        return rc;
    return step->kind == STEP_COPY ? write_span(c, r, &step->dst, &c->what)
                                   : reduce_into(c, r, i);
}

static int run_message(struct checker *c, int src, int i, int dst, int j)
{
    const struct coll__step *send = &c->ranks[src].plan->steps[i];
    const struct coll__step *recv = &c->ranks[dst].plan->steps[j];
    int rc;

    if (send->src.len != recv->dst.len)
        return fault(c, "rank %d step %d sends %zu bytes to rank %d, whose "
                     "step %d takes %zu", src, i, send->src.len, dst, j,
                     recv->dst.len);
    rc = read_span(c, src, i, &send->src, &c->what);
    if (rc)
        return rc;
    return recv->kind == STEP_RECV ? write_span(c, dst, &recv->dst, &c->what)
                                   : reduce_into(c, dst, j);
}

/* ---- events -------------------------------------------------------------- */

static int add_event(struct checker *c, int rank, int step)
{
    if (c->n_events == c->cap_events) {
        int cap = c->cap_events ? 2 * c->cap_events : 64;
        struct event *more =
            realloc(c->events, (size_t)cap * sizeof(*more));

        if (!more)
            return no_memory(c);
        c->events = more;
        c->cap_events = cap;
    }
    c->events[c->n_events++] = (struct event){rank, step};
    return COLL_OK;
}

/* A step's last edge was fulfilled, or its lane has moved on: add its event if it can
 * happen now. */
static int consider(struct checker *c, int r, int i)
{
    const struct coll__step *step = &c->ranks[r].plan->steps[i];
    int dir = coll__step_is_recv(step->kind), other;

    if (c->ranks[r].left[i])
        return COLL_OK;
    if (!coll__step_is_message(step->kind))
        return add_event(c, r, i);
    if (c->ranks[r].head[dir][step->peer] != i)
        return COLL_OK;
    other = c->ranks[step->peer].head[!dir][r];
    if (other < 0 || c->ranks[step->peer].left[other])
        return COLL_OK;
    return dir ? add_event(c, step->peer, other) : add_event(c, r, i);
}

/* Step i of rank r is done: let the steps that wait for it go on. */
static int finish(struct checker *c, int r, int i)
{
    struct rank *rank = &c->ranks[r];
    int rc = COLL_OK;

    rank->n_done++;
    for (int e = rank->plan->first_after[i];
         e < rank->plan->first_after[i + 1] && rc == COLL_OK; e++)
        if (--rank->left[rank->plan->after[e]] == 0)
            rc = consider(c, r, rank->plan->after[e]);
    return rc;
}

static void advance_lane(struct checker *c, int r, int i)
{
    const struct coll__step *step = &c->ranks[r].plan->steps[i];
    int dir = coll__step_is_recv(step->kind);

    c->ranks[r].head[dir][step->peer] = c->ranks[r].next[i];
}

static int run_event(struct checker *c, struct event ev)
{
    const struct coll__step *step = &c->ranks[ev.rank].plan->steps[ev.step];
    int peer = step->peer, other, rc;

    if (!coll__step_is_message(step->kind)) {
        rc = run_local(c, ev.rank, ev.step);
        return rc ? rc : finish(c, ev.rank, ev.step);
    }
    other = c->ranks[peer].head[1][ev.rank];
    rc = run_message(c, ev.rank, ev.step, peer, other);
    if (rc)
        return rc;
    /* move both lanes before other steps are considered */
    advance_lane(c, ev.rank, ev.step);
    advance_lane(c, peer, other);
    rc = c->ranks[ev.rank].next[ev.step] >= 0
             ? consider(c, ev.rank, c->ranks[ev.rank].next[ev.step])
             : COLL_OK;
    if (rc == COLL_OK)
        rc = finish(c, ev.rank, ev.step);
    return rc ? rc : finish(c, peer, other);
}

static struct event take_event(struct checker *c)
{
    struct event ev;
    int i;

    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    i = (int)((c->random >> 33) % (uint64_t)c->n_events);
    ev = c->events[i];
    c->events[i] = c->events[--c->n_events];
    return ev;
}

/* ---- the whole run ------------------------------------------------------- */

/* Put rank r's input, from byte `from` on, into a span. */
static int put_in(struct checker *c, int r, struct coll__span span, size_t from)
{
    struct coll__piece piece = {.off = span.off,
                                .len = span.len,
                                .from = from,
                                .set = c->one[r]};

    if (c->pbs[0].order != ORDER_FREE)
        piece.tree = coll__trees_leaf(&c->trees, r);
    if (piece.tree < 0)
        return no_memory(c);
    c->what.n = 0;
    piece.off = 0;
    if (coll__memory_append(&c->what, &piece) ||
        coll__memory_write(&c->ranks[r].mem[span.buf], span.off, span.len,
                           &c->what))
        return no_memory(c);
    return COLL_OK;
}

/* Fill in what a rank's buffers hold at the start.  `from` is the offset in IN as if
 * the rank were not in place.  In place, the rank's own part of IN is in OUT instead;
 * in an alltoall all parts are. */
static int fill_in(struct checker *c, int r)
{
    const struct coll__problem *pb = &c->pbs[r];
    enum coll__shape shape = coll__problem_shape(pb, BUF_IN);
    int is_exchange = pb->collective == COLL_ALLTOALL ||
                      pb->collective == COLL_ALLTOALLV;
    int rc = COLL_OK;

    if (shape == SHAPE_NONE)
        return COLL_OK;
    if (shape == SHAPE_WHOLE)
        return put_in(c, r, coll__own_in(pb), 0);
    for (int q = 0; q < pb->nranks && rc == COLL_OK; q++) {
        struct coll__span part = coll__part(pb, BUF_IN, q);
        size_t from = part.off;

        if (pb->in_place && is_exchange)
            part = coll__part(pb, BUF_OUT, q);
        else if (pb->in_place && q == r)
            part = coll__whole(pb, BUF_OUT);
        rc = put_in(c, r, part, from);
    }
    return rc;
}

/* Chain the steps of each lane. */
static void make_lanes(struct checker *c, int r)
{
    struct rank *rank = &c->ranks[r];

    for (int dir = 0; dir < 2; dir++)
        for (int q = 0; q < c->p; q++)
            rank->head[dir][q] = -1;
    for (int i = rank->plan->n_steps - 1; i >= 0; i--) {
        const struct coll__step *step = &rank->plan->steps[i];
        int dir = coll__step_is_recv(step->kind);

        if (!coll__step_is_message(step->kind))
            continue;
        rank->next[i] = rank->head[dir][step->peer];
        rank->head[dir][step->peer] = i;
    }
}

static int rank_init(struct checker *c, int r, const struct coll__plan *plan)
{
    struct rank *rank = &c->ranks[r];
    size_t n = (size_t)plan->n_steps + 1, p = (size_t)c->p;

    rank->plan = plan;
    rank->left = malloc(n * sizeof(int));
    rank->next = malloc(n * sizeof(int));
    rank->head[0] = malloc(p * sizeof(int));
    rank->head[1] = malloc(p * sizeof(int));
    if (!rank->left || !rank->next || !rank->head[0] || !rank->head[1])
        return no_memory(c);
    memcpy(rank->left, plan->n_deps, (n - 1) * sizeof(int));
    make_lanes(c, r);
    return fill_in(c, r);
}

/* Add the first events.  Only sends are looked at, so that no message is added twice. */
static int start(struct checker *c)
{
    int rc = COLL_OK;

    for (int r = 0; r < c->p && rc == COLL_OK; r++)
        for (int i = 0; i < c->ranks[r].plan->n_steps && rc == COLL_OK; i++)
            if (!coll__step_is_recv(c->ranks[r].plan->steps[i].kind))
                rc = consider(c, r, i);
    return rc;
}

static int stuck(struct checker *c, int r)
{
    const struct rank *rank = &c->ranks[r];

    for (int dir = 0; dir < 2; dir++)
        for (int q = 0; q < c->p; q++)
            if (rank->head[dir][q] >= 0 && !rank->left[rank->head[dir][q]])
                return fault(c, "rank %d gets stuck at step %d, %s peer %d", r,
                             rank->head[dir][q],
                             dir ? "waiting for" : "sending to", q);
    return fault(c, "rank %d gets stuck: %d of %d steps done", r, rank->n_done,
                 rank->plan->n_steps);
}

/* Find what a scan leaves on a rank: the first ranks, combined in the canonical tree. */
static int find_prefix(struct checker *c, int r, int *set, int *tree)
{
    int is_scan = c->pbs[r].collective == COLL_SCAN;

    *set = coll__sets_all(&c->sets, r + is_scan);
    if (c->pbs[r].order != ORDER_FREE)
        *tree = is_scan ? coll__trees_scan(&c->trees, r)
                        : coll__trees_exscan(&c->trees, r);
    return *set < 0 || *tree < 0 ? no_memory(c) : COLL_OK;
}

static int judge(struct checker *c, int r)
{
    struct coll__verdict verdict = {
        .pbs = c->pbs,
        .rank = r,
        .out = &c->ranks[r].mem[BUF_OUT],
        .one = c->one,
        .all = c->all,
        .canonical = c->canonical,
        .scratch = &c->what,
        .why = c->why,
        .why_len = c->why_len,
    };
    int rc = COLL_OK;

    if (coll__is_prefix(c->pbs[r].collective) &&
        coll__problem_shape(&c->pbs[r], BUF_OUT) != SHAPE_NONE)
        rc = find_prefix(c, r, &verdict.all, &verdict.canonical);
    return rc ? rc : coll__judge_out(&verdict);
}

static int run(struct checker *c)
{
    int rc = start(c);

    while (rc == COLL_OK && c->n_events)
        rc = run_event(c, take_event(c));
    for (int r = 0; r < c->p && rc == COLL_OK; r++)
        if (c->ranks[r].n_done != c->ranks[r].plan->n_steps)
            rc = stuck(c, r);
    for (int r = 0; r < c->p && rc == COLL_OK; r++)
        rc = judge(c, r);
    return rc;
}

static void checker_fini(struct checker *c)
{
    for (int r = 0; c->ranks && r < c->p; r++) {
        for (int b = 0; b < N_BUFS; b++)
            coll__memory_fini(&c->ranks[r].mem[b]);
        free(c->ranks[r].left);
        free(c->ranks[r].next);
        free(c->ranks[r].head[0]);
        free(c->ranks[r].head[1]);
    }
    free(c->ranks);
    free(c->events);
    free(c->one);
    coll__memory_fini(&c->what);
    coll__memory_fini(&c->had);
    coll__memory_fini(&c->now);
    coll__sets_fini(&c->sets);
    coll__trees_fini(&c->trees);
}

static int checker_init(struct checker *c)
{
    enum coll__order order = c->pbs[0].order;

    c->ranks = calloc((size_t)c->p, sizeof(*c->ranks));
    c->one = calloc((size_t)c->p, sizeof(*c->one));
    if (!c->ranks || !c->one || coll__sets_init(&c->sets, c->p) ||
        (c->all = coll__sets_all(&c->sets, c->p)) < 0)
        return no_memory(c);
    for (int r = 0; r < c->p; r++)
        if ((c->one[r] = coll__sets_one(&c->sets, r)) < 0)
            return no_memory(c);
    if (order == ORDER_FREE)
        return COLL_OK;
    if (coll__trees_init(&c->trees, order == ORDER_CANONICAL) ||
        (c->canonical = coll__trees_canonical(&c->trees, c->p)) < 0)
        return no_memory(c);
    return COLL_OK;
}

/* Set limits far above the needs of useful plans, so that a hostile plan cannot take
 * all memory. */
static void set_limits(struct checker *c, const struct coll__plan *plans)
{
    size_t p = (size_t)c->p, n_steps = 0;

    for (size_t r = 0; r < p; r++)
        n_steps += (size_t)plans[r].n_steps;
    c->most_pieces = ((size_t)1 << 18) + 4 * p * n_steps;
    c->most_sets = (int)min_size(4096 + 8 * (p + n_steps), INT_MAX / 2);
}

int coll__plan_check(const struct coll__problem *pbs,
                     const struct coll__plan *plans, unsigned seed, char *why,
                     size_t len)
{
    struct checker c = {.pbs = pbs,
                        .p = pbs[0].nranks,
                        .adds_up = pbs[0].collective != COLL_BARRIER,
                        .why = why,
                        .why_len = len};
    int rc;

    c.random = seed * 2654435761u + 1;
    set_limits(&c, plans);
    rc = checker_init(&c);
    for (int r = 0; r < c.p && rc == COLL_OK; r++)
        rc = coll__plan_bounds(&pbs[r], &plans[r], why, len);
    for (int r = 0; r < c.p && rc == COLL_OK; r++)
        rc = rank_init(&c, r, &plans[r]);
    if (rc == COLL_OK)
        rc = run(&c);
    checker_fini(&c);
    return rc;
}
