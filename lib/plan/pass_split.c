/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_split.c - recut long steps into pipeline chunks.
 *
 * A piece's length depends on the step's length alone, so both ends of a
 * message are cut alike.  A step has at most COLL__MAX_PIECES pieces: beyond
 * that the pipeline gains nothing and the plan only grows.
 */
#include "lib/plan/flow.h"
#include "lib/plan/plan.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

#define ALIGN 64 /* a multiple of every element size */

struct cut {
    const struct coll__plan *plan;
    size_t chunk;
    int band;
    unsigned char *is_apart; /* [n_steps]: stays whole; NULL: none does */
};

/* Return the bytes that a step works on; an ORDER step moves none. */
static size_t step_len(const struct coll__step *step)
{
    if (step->kind == STEP_ORDER)
        return 0;
    return coll__step_writes_dst(step->kind) ? step->dst.len : step->src.len;
}

static size_t piece_len(const struct cut *cut, size_t len)
{
    size_t least = cut->band ? 0 : len / COLL__MAX_PIECES;

    return round_up(max_size(cut->chunk, least), ALIGN);
}

static int n_pieces(const struct cut *cut, const struct coll__step *step)
{
    size_t len = step_len(step), piece = piece_len(cut, len);

    if (len <= piece ||
        (cut->is_apart && cut->is_apart[step - cut->plan->steps]))
        return 1;
    return (int)((len + piece - 1) / piece);
}

static struct coll__step piece_of(const struct cut *cut,
                                  const struct coll__step *step, int i)
{
    size_t len = step_len(step), piece = piece_len(cut, len);
    size_t off = (size_t)i * piece;
    struct coll__step part = *step;

    part.dst.off += off;
    part.src.off += off;
    part.dst.len = part.src.len = min_size(piece, len - off);
    return part;
}

/* ---- what stays whole ------------------------------------------------------ */

static void count(int *n_more, const struct coll__segments *at)
{
    n_more[at->from]++;
    n_more[at->to]--;
}

/* Is it a COPY from a buffer that no step writes, to bytes that no other step uses? */
static int stands_apart(const struct coll__step *step,
                        const struct coll__touch *touch, const int *n_at)
{
    if (step->kind != STEP_COPY || touch->src.from < touch->src.to)
        return 0;
    for (int s = touch->dst.from; s < touch->dst.to; s++)
        if (n_at[s] > 1)
            return 0;
    return 1;
}

/* Find the COPYs that stand apart (stands_apart()).  They are not cut: no step waits
 * for them, and an uncut COPY is one call of a device. */
static int find_apart(struct cut *cut, struct coll__flow *flow)
{
    const struct coll__plan *plan = cut->plan;
    int rc = coll__flow_need(flow, plan), *n_at;

    if (rc)
        return rc;
    cut->is_apart = calloc((size_t)plan->n_steps + 1, 1);
    n_at = calloc((size_t)flow->n_segments + 1, sizeof(*n_at));
    if (!cut->is_apart || !n_at) {
        log_error("plan", "no memory for a plan of %d steps", plan->n_steps);
        free(n_at);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < plan->n_steps; i++) {
        count(n_at, &flow->touches[i].dst);
        count(n_at, &flow->touches[i].src);
    }
    for (int s = 1; s < flow->n_segments; s++)
        n_at[s] += n_at[s - 1];
    for (int i = 0; i < plan->n_steps; i++)
        cut->is_apart[i] = (unsigned char)stands_apart(&plan->steps[i],
                                                       &flow->touches[i], n_at);
    free(n_at);
    return COLL_OK;
}

/* ---- places ---------------------------------------------------------------- */

/* Return the place of piece k of a step.  Without phases or bands there is one place. */
static unsigned place_of(const struct cut *cut, const struct coll__step *step,
                         int k)
{
    if (cut->band)
        return (unsigned)(k / cut->band);
    return cut->plan->phase ? (unsigned)k + step->phase : 0;
}

/* Return the number of pieces of all steps, and set *n_places to the number of places. */
static int count_pieces(const struct cut *cut, int *n_places)
{
    int n_all = 0;

    *n_places = 0;
    for (int i = 0; i < cut->plan->n_steps; i++) {
        const struct coll__step *step = &cut->plan->steps[i];
        int n = n_pieces(cut, step);

        *n_places = max_int(*n_places, (int)place_of(cut, step, n - 1) + 1);
        n_all += n;
    }
    return n_all;
}

/* Find where each place begins in the new list. */
static void find_places(const struct cut *cut, int *at, int n_places)
{
    for (int i = 0; i < cut->plan->n_steps; i++) {
        const struct coll__step *step = &cut->plan->steps[i];

        for (int k = 0; k < n_pieces(cut, step); k++)
            at[place_of(cut, step, k)]++;
    }
    for (int place = 0, first = 0, n; place < n_places; place++) {
        n = at[place];
        at[place] = first;
        first += n;
    }
}

/* List the pieces place by place; within a place, in the order of the steps. */
static void cut_all(const struct cut *cut, int *at, struct coll__step *to)
{
    for (int i = 0; i < cut->plan->n_steps; i++) {
        const struct coll__step *step = &cut->plan->steps[i];
        int n = n_pieces(cut, step);

        for (int k = 0; k < n; k++)
            to[at[place_of(cut, step, k)]++] =
                n > 1 ? piece_of(cut, step, k) : *step;
    }
}

static int split(const struct cut *cut, struct coll__plan *plan,
                 struct coll__flow *flow)
{
    int n_places, n_all = count_pieces(cut, &n_places);
    struct coll__step *steps;
    int *at;

    if (n_all == plan->n_steps)
        return COLL_OK;
    at = calloc((size_t)n_places, sizeof(*at));
    steps = malloc((size_t)n_all * sizeof(*steps));
    if (!at || !steps) {
        log_error("plan", "no memory for a plan of %d steps", n_all);
        free(at);
        free(steps);
        return COLL_ERR_NOMEM;
    }
    find_places(cut, at, n_places);
    cut_all(cut, at, steps);
    free(at);
    free(plan->steps);
    coll__flow_fini(flow);
    plan->steps = steps;
    plan->n_steps = plan->cap_steps = n_all;
    return COLL_OK;
}

int coll__pass_split(struct coll__plan *plan, struct coll__flow *flow,
                     size_t chunk, int band)
{
    struct cut cut = {plan, chunk, band, NULL};
    int rc;

    if (!chunk)
        return COLL_OK;
    rc = band ? find_apart(&cut, flow) : COLL_OK;
    if (rc == COLL_OK)
        rc = split(&cut, plan, flow);
    free(cut.is_apart);
    return rc;
}
