/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_fit.c - cut messages that are longer than a slot.
 *
 * The number of pieces depends on the message's length alone, so both ends cut alike.
 * There is no limit on the number of pieces, unlike in coll__pass_split().
 *
 * Local steps need no slot.  But an uncut local step between two messages would make
 * each piece of the second message wait for all pieces of the first.  The other ranks
 * do not know of such a step (this rank may not work in place although they assume it
 * does).  So these local steps are cut too.
 */
#include "lib/plan/schedule.h"
#include "lib/trace/log.h"

#include <stdlib.h>

static size_t len_of(const struct coll__step *step)
{
    return step->kind == STEP_SEND ? step->src.len : step->dst.len;
}

/* Does the step wait for a step, and does another step wait for it? */
static int is_between(const struct coll__plan *plan, int i)
{
    return plan->n_deps[i] > 0 &&
           plan->first_after[i + 1] > plan->first_after[i];
}

static int n_pieces(const struct coll__plan *plan, int i, size_t slot)
{
    const struct coll__step *step = &plan->steps[i];
    int is_cut = coll__step_is_message(step->kind) ||
                 (step->kind != STEP_ORDER && is_between(plan, i));
    size_t len = is_cut ? len_of(step) : 0;

    return len <= slot ? 1 : (int)((len + slot - 1) / slot);
}

static struct coll__step piece_of(const struct coll__step *step, size_t slot,
                                  int i)
{
    size_t off = (size_t)i * slot, left = len_of(step) - off;
    struct coll__step part = *step;

    part.dst.off += off;
    part.src.off += off;
    part.dst.len = part.src.len = left < slot ? left : slot;
    return part;
}

int coll__plan_fit(struct coll__plan *plan, size_t slot)
{
    struct coll__step *steps;
    int n = 0;

    for (int i = 0; i < plan->n_steps; i++)
        n += n_pieces(plan, i, slot);
    if (n == plan->n_steps)
        return COLL_OK;
    steps = malloc((size_t)n * sizeof(*steps));
    if (!steps) {
        log_error("plan", "no memory for a plan of %d steps", n);
        return COLL_ERR_NOMEM;
    }
    n = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        int pieces = n_pieces(plan, i, slot);

        for (int k = 0; k < pieces; k++)
            steps[n++] = pieces > 1 ? piece_of(&plan->steps[i], slot, k)
                                    : plan->steps[i];
    }
    coll__plan_unlink(plan);
    free(plan->steps);
    plan->steps = steps;
    plan->n_steps = plan->cap_steps = n;
    return coll__plan_link(plan);
}
