/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_fit.c - cut messages that fit no slot.
 *
 * A message's pieces depend on its length alone, so both ends cut alike.  Unlike
 * coll__pass_split() it makes as many of them as it takes, and leaves local steps
 * whole: these need no slot.
 */
#include "lib/plan/order.h"
#include "lib/trace/log.h"

#include <stdlib.h>

static int is_message(const struct coll__step *step)
{
    return step->kind == STEP_SEND || coll__step_is_recv(step->kind);
}

static size_t len_of(const struct coll__step *step)
{
    return step->kind == STEP_SEND ? step->src.len : step->dst.len;
}

static int n_pieces(const struct coll__step *step, size_t slot)
{
    size_t len = is_message(step) ? len_of(step) : 0;

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
        n += n_pieces(&plan->steps[i], slot);
    if (n == plan->n_steps)
        return COLL_OK;
    steps = malloc((size_t)n * sizeof(*steps));
    if (!steps) {
        log_error("plan", "no memory for a plan of %d steps", n);
        return COLL_ERR_NOMEM;
    }
    n = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        int pieces = n_pieces(&plan->steps[i], slot);

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
