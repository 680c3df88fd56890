/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_split.c - recut long steps into pipeline chunks.
 *
 * A piece's length depends on the step's length alone, so both ends of a
 * message are cut alike.  A step has at most COLL__MAX_PIECES pieces: beyond
 * that the pipeline gains nothing and the plan only grows.
 */
#include "lib/plan/plan.h"
#include "lib/util/util.h"

#include <stdlib.h>

#define ALIGN 64 /* a multiple of every element size */

static size_t step_len(const struct coll__step *step)
{
    return coll__step_writes_dst(step->kind) ? step->dst.len : step->src.len;
}

static void add_pieces(struct coll__plan *to, const struct coll__step *step,
                       size_t chunk)
{
    size_t len = step_len(step);
    size_t piece = round_up(max_size(chunk, len / COLL__MAX_PIECES), ALIGN);
    struct coll__step part = *step;

    if (len <= piece) {
        coll__plan_add(to, step);
        return;
    }
    for (size_t off = 0; off < len; off += piece) {
        part.dst.off = step->dst.off + off;
        part.src.off = step->src.off + off;
        part.dst.len = part.src.len = min_size(piece, len - off);
        coll__plan_add(to, &part);
    }
}

int coll__pass_split(struct coll__plan *plan, size_t chunk)
{
    struct coll__plan cut = {.algorithm = plan->algorithm};

    if (!chunk)
        return COLL_OK;
    for (int i = 0; i < plan->n_steps; i++)
        add_pieces(&cut, &plan->steps[i], chunk);
    if (cut.status != COLL_OK) {
        coll__plan_fini(&cut);
        return COLL_ERR_NOMEM;
    }
    free(plan->steps);
    plan->steps = cut.steps;
    plan->n_steps = cut.n_steps;
    plan->cap_steps = cut.cap_steps;
    return COLL_OK;
}
