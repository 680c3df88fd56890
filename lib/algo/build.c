/* SPDX-License-Identifier: BSD-3-Clause */
/* build.c - the passes that turn a builder's steps into a plan that can run. */
#include "lib/algo/algo.h"
#include "lib/plan/flow.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <stdlib.h>

const char *coll__algo_refuses(const struct coll__algo *algo,
                               const struct coll__problem *pb)
{
    if (!(algo->serves & 1u << pb->collective))
        return "serves other collectives";
    if (pb->order != ORDER_FREE && !algo->is_canonical &&
        coll__reduces(pb->collective))
        return pb->order == ORDER_RANKS && !coll__is_prefix(pb->collective)
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

/* How a plan is cut: see coll__plan_build() and coll__plan_build_for_slots(). */
struct cut {
    size_t chunk, slice;
    int band;
};

static int build_steps(const struct coll__algo *algo,
                       const struct coll__problem *pb, const struct cut *cut,
                       struct coll__plan *plan)
{
    int rc;

    if (algo->goes_up && cut->slice)
        return coll__plan_build_slices(algo, pb, cut->slice, plan);
    rc = algo->build(pb, plan);
    if (algo->goes_up)
        plan->phase = 0; /* its pieces are not those of spans of one length */
    return rc;
}

static int build(const struct coll__algo *algo, const struct coll__problem *pb,
                 const struct cut *cut, struct coll__plan *plan)
{
    int goes_apart = algo->goes_apart && !pb->is_user_op; /* all is fused */
    struct coll__flow flow = {0};
    int status;

    *plan = (struct coll__plan){.algorithm = algo->name, .runs_as_listed = 1};
    status = build_steps(algo, pb, cut, plan);
    if (status == COLL_OK) /* a send from IN does not keep a RECV and its REDUCE apart */
        status = coll__pass_forward(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op) /* lib/exec alone calls user functions */
        status = coll__pass_fuse(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op) /* for the fused steps */
        status = coll__pass_forward(plan, &flow);
    if (status == COLL_OK && !pb->is_user_op && cut->band)
        status = coll__pass_absorb(plan, &flow);
    if (status == COLL_OK)
        status =
            coll__pass_split(plan, &flow, algo->goes_whole ? 0 : cut->chunk,
                             goes_apart ? cut->band : 0);
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
    struct cut cut = {.chunk = chunk};

    return build(algo, pb, &cut, plan);
}

int coll__plan_build_for_slots(const struct coll__algo *algo,
                               const struct coll__problem *pb,
                               const struct coll__slots *slots,
                               struct coll__plan *plan)
{
    struct cut cut = {.chunk = slots->slot,
                      .slice = slots->slice,
                      .band = max_int(1, slots->n_slots - 1)};

    return build(algo, pb, &cut, plan);
}
