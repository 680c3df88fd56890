/* SPDX-License-Identifier: BSD-3-Clause */
/* pass_absorb.c - turn a RECV and the REDUCE of the received operand with another one
 * into one RECV_REDUCE.
 *
 *   recv sum                                recv_reduce sum with in
 *   reduce sum with in                ->
 *
 * The pass does so only if no step writes the other operand.  Then the RECV_REDUCE
 * waits only for the steps that the RECV waits for.
 */
#include "lib/plan/flow.h"
#include "lib/plan/plan.h"

static int can_absorb(const struct coll__flow *flow,
                      const struct coll__step *recv,
                      const struct coll__step *reduce)
{
    return recv->kind == STEP_RECV && reduce->kind == STEP_REDUCE &&
           coll__same_span(&recv->dst, &reduce->dst) &&
           reduce->src.buf != reduce->dst.buf &&
           !flow->is_written[reduce->src.buf];
}

int coll__pass_absorb(struct coll__plan *plan, struct coll__flow *flow)
{
    int n = 0;

    if (coll__flow_need(flow, plan))
        return COLL_ERR_NOMEM;
    for (int i = 0; i + 1 < plan->n_steps; i++) {
        struct coll__step *recv = &plan->steps[i], *reduce = recv + 1;

        if (!can_absorb(flow, recv, reduce))
            continue;
        reduce->kind = STEP_RECV_REDUCE;
        reduce->peer = recv->peer;
        reduce->src_first = !reduce->src_first; /* of what came, or of src */
        recv->peer = COLL__DROPPED;
        n++;
    }
    if (n)
        coll__flow_compact(flow, plan);
    return COLL_OK;
}
