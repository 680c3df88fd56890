/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_split.c - recut long steps into pipeline chunks.
 *
 * A piece's length depends on the step's length alone, so both ends of a
 * message are cut alike.  A step has at most COLL__MAX_PIECES pieces: beyond
 * that the pipeline gains nothing and the plan only grows.
 */
#include "lib/plan/plan.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

#define ALIGN 64 /* a multiple of every element size */

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

/* From the last step to the first, so that no piece overwrites a step that is
 * still to be cut. */
static void cut_all(struct coll__plan *plan, size_t chunk, int n_all)
{
    int to = n_all;

    for (int i = plan->n_steps - 1; i >= 0 && to > i + 1; i--) {
        struct coll__step step = plan->steps[i];
        int n = n_pieces(&step, chunk);

        to -= n;
        for (int k = 0; k < n; k++)
            plan->steps[to + k] = n > 1 ? piece_of(&step, chunk, k) : step;
    }
}

int coll__pass_split(struct coll__plan *plan, size_t chunk)
{
    struct coll__step *steps;
    int n_all = 0;

    if (!chunk)
        return COLL_OK;
    for (int i = 0; i < plan->n_steps; i++)
        n_all += n_pieces(&plan->steps[i], chunk);
    if (n_all > plan->cap_steps) {
        steps = realloc(plan->steps, (size_t)n_all * sizeof(*steps));
        if (!steps) {
            log_error("plan", "no memory for a plan of %d steps", n_all);
            return COLL_ERR_NOMEM;
        }
        plan->steps = steps;
        plan->cap_steps = n_all;
    }
    cut_all(plan, chunk, n_all);
    plan->n_steps = n_all;
    return COLL_OK;
}
