/* SPDX-License-Identifier: BSD-3-Clause */
/* build.c - the passes that turn a builder's steps into a plan that can run. */
#include "lib/algo/algo.h"
#include "lib/plan/flow.h"

#include <stdlib.h>

const char *coll__algo_refuses(const struct coll__algo *algo,
                               const struct coll__problem *pb)
{
    if (!(algo->serves & 1u << pb->collective))
        return "serves other collectives";
    if (pb->order != ORDER_FREE && !algo->is_canonical &&
        coll__reduces(pb->collective))
        return pb->order == ORDER_RANKS
                   ? "does not combine in the order of the ranks"
                   : "is not reproducible";
    return algo->refuses ? algo->refuses(pb) : NULL;
}

/* Free the space for steps that were not added. */
static void trim(struct coll__plan *plan)
{
    size_t n = plan->n_steps ? (size_t)plan->n_steps : 1;
    struct coll__step *steps = realloc(plan->steps, n * sizeof(*steps));

    if (!steps)
        return;
    plan->steps = steps;
    plan->cap_steps = (int)n;
}

int coll__plan_build_banded(const struct coll__algo *algo,
                            const struct coll__problem *pb, size_t chunk,
                            int band, struct coll__plan *plan)
{
    int goes_apart = algo->goes_apart && !pb->is_user_op; /* all is fused */
    struct coll__flow flow = {0};
    int status;

    *plan = (struct coll__plan){.algorithm = algo->name, .runs_as_listed = 1};
    status = algo->build(pb, plan);
    if (status == COLL_OK) /* a send from IN does not keep a RECV and its REDUCE apart */
        status = coll__pass_forward(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op) /* lib/exec alone calls user functions */
        status = coll__pass_fuse(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op) /* for the fused steps */
        status = coll__pass_forward(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op && band)
        status = coll__pass_absorb(plan, &flow);
    if (status == COLL_OK)
        status = coll__pass_split(plan, &flow, algo->goes_whole ? 0 : chunk,
                                  goes_apart ? band : 0);
    if (status == COLL_OK)
        status = coll__flow_link(&flow, plan);
    coll__flow_fini(&flow);
    if (status == COLL_OK)
        trim(plan);
    else
        coll__plan_fini(plan);
    return status;
}

int coll__plan_build(const struct coll__algo *algo,
                     const struct coll__problem *pb, size_t chunk,
                     struct coll__plan *plan)
{
    return coll__plan_build_banded(algo, pb, chunk, 0, plan);
}
