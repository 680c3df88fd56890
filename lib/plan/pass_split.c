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
#define PLACES (2 * COLL__MAX_PIECES) /* more than a step has pieces */

/* What a step works on; an ORDER step moves nothing. */
static size_t step_len(const struct coll__step *step)
{
    if (step->kind == STEP_ORDER)
        return 0;
    return coll__step_writes_dst(step->kind) ? step->dst.len : step->src.len;
}

static size_t piece_len(size_t len, size_t chunk)
{
    return round_up(max_size(chunk, len / COLL__MAX_PIECES), ALIGN);
}

static int n_pieces(const struct coll__step *step, size_t chunk)
{
    size_t len = step_len(step), piece = piece_len(len, chunk);

    return len <= piece ? 1 : (int)((len + piece - 1) / piece);
}

static struct coll__step piece_of(const struct coll__step *step, size_t chunk,
                                  int i)
{
    size_t len = step_len(step), piece = piece_len(len, chunk);
    size_t off = (size_t)i * piece;
    struct coll__step part = *step;

    part.dst.off += off;
    part.src.off += off;
    part.dst.len = part.src.len = min_size(piece, len - off);
    return part;
}

/* Where piece k of a step stands; without phases, all at one place. */
static unsigned place_of(const struct coll__plan *plan,
                         const struct coll__step *step, int k)
{
    return plan->phase ? (unsigned)k + step->phase : 0;
}

/* How many pieces stand at each place; returns how many there are. */
static int count_pieces(const struct coll__plan *plan, size_t chunk,
                        int *n_at)
{
    int n_all = 0;

    for (int i = 0; i < plan->n_steps; i++) {
        int n = n_pieces(&plan->steps[i], chunk);

        for (int k = 0; k < n && n_at; k++)
            n_at[place_of(plan, &plan->steps[i], k)]++;
        n_all += n;
    }
    return n_all;
}

/* Place by place, and at each in the order of the steps. */
static void cut_all(const struct coll__plan *plan, size_t chunk, int *n_at,
                    int n_places, struct coll__step *to)
{
    for (int place = 0, first = 0, n; place < n_places; place++) {
        n = n_at[place];
        n_at[place] = first;
        first += n;
    }
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        int n = n_pieces(step, chunk);

        for (int k = 0; k < n; k++) {
            int *at = &n_at[place_of(plan, step, k)];

            to[(*at)++] = n > 1 ? piece_of(step, chunk, k) : *step;
        }
    }
}

int coll__pass_split(struct coll__plan *plan, struct coll__flow *flow,
                     size_t chunk)
{
    int n_places = PLACES + (int)plan->phase, *n_at;
    int n_all = chunk ? count_pieces(plan, chunk, NULL) : plan->n_steps;
    struct coll__step *steps;

    if (n_all == plan->n_steps)
        return COLL_OK;
    n_at = calloc((size_t)n_places, sizeof(*n_at));
    steps = malloc((size_t)n_all * sizeof(*steps));
    if (!n_at || !steps) {
        log_error("plan", "no memory for a plan of %d steps", n_all);
        free(n_at);
        free(steps);
        return COLL_ERR_NOMEM;
    }
    count_pieces(plan, chunk, n_at);
    cut_all(plan, chunk, n_at, n_places, steps);
    free(n_at);
    free(plan->steps);
    coll__flow_fini(flow);
    plan->steps = steps;
    plan->n_steps = plan->cap_steps = n_all;
    return COLL_OK;
}
