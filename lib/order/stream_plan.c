/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_plan.c - plans for ranks that do one step after the other.
 *
 * A rank knows the other ranks' calls except for two things: whether they work in
 * place, and counts that each rank knows alone.
 */
#include "lib/order/order.h"
#include "lib/trace/log.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <stdlib.h>

int coll__plan_build_fit(const struct coll__algo *algo,
                         const struct coll__problem *pb,
                         const struct coll__slots *slots,
                         struct coll__plan *plan)
{
    int rc = coll__plan_build_for_slots(algo, pb, slots, plan);

    if (rc == COLL_OK && (rc = coll__plan_fit(plan, slots->slot)))
        coll__plan_fini(plan);
    return rc;
}

/* The levels of a machine overlap if what goes through them is in several pieces: these,
 * if they are long enough.  A piece takes its link so much longer than its calls. */
#define PIECES 8
#define PIECE_LEAST ((size_t)64 << 10)
#define PIECE_GAPS 4

/* Messages of a slice between two ranks on the last level (tests/order/overlap.md). */
#define SLICE_MESSAGES 2

void coll__slots_for_levels(const struct coll__problem *pb,
                            struct coll__slots *slots)
{
    const struct coll__view *view = pb->view;
    const struct coll__level *last;
    size_t n = coll__problem_total(pb) / PIECES;
    double least = PIECE_LEAST;

    if (!view || view->n_levels < 2)
        return;
    last = &view->levels[view->n_levels - 1];
    n /= (size_t)max_int(1, last[-1].size_min);
    if (last->beta > 0)
        least = max_double(least, PIECE_GAPS * last->gap / last->beta);
    if (least < (double)slots->slot) {
        n = max_size(n, (size_t)least) / PIECE_LEAST * PIECE_LEAST;
        slots->slot = min_size(n, slots->slot);
    }
    slots->slice = SLICE_MESSAGES * slots->slot * (size_t)pb->nranks;
}

struct coll__problem coll__problem_of(const struct coll__problem *pb, int r)
{
    struct coll__problem its = *pb;

    its.rank = r;
    if (pb->collective == COLL_ALLGATHERV)
        its.count = pb->out_counts[r];
    else if (pb->collective == COLL_REDUCE_SCATTERV)
        its.count = pb->in_counts[r];
    return its;
}

/* Return this rank's slot order in a simulated run of all ranks. */
static int order_of_all(const struct coll__builder *from,
                        const struct coll__problem *pb,
                        const struct coll__slots *slots,
                        struct coll__slot_order *order)
{
    struct coll__plan *plans = calloc((size_t)pb->nranks, sizeof(*plans));
    int rc = plans ? COLL_OK : COLL_ERR_NOMEM;

    if (rc)
        log_error("plan", "no memory for %d plans", pb->nranks);
    for (int r = 0; r < pb->nranks && rc == COLL_OK; r++) {
        struct coll__problem its = coll__problem_of(pb, r);

        its.in_place = coll__problem_may_be_in_place(&its);
        rc = from->build(from->arg, &its, slots, &plans[r]);
    }
    if (rc == COLL_OK)
        rc = coll__plans_slot_order(plans, pb->nranks, slots->n_slots, pb->rank,
                                    order);
    for (int r = 0; plans && r < pb->nranks; r++)
        coll__plan_fini(&plans[r]);
    free(plans);
    return rc;
}

int coll__plan_in_slot_order(const struct coll__builder *from,
                             const struct coll__problem *pb,
                             const struct coll__slots *slots,
                             struct coll__plan *plan)
{
    int is_alone =
        coll__is_p2p(pb->collective) || coll__has_own_counts(pb->collective);
    struct coll__slot_order order = {0};
    int rc = from->build(from->arg, pb, slots, plan);

    if (rc)
        return rc;
    rc = is_alone ? coll__plan_slot_order_alone(
                        plan, pb->nranks, slots->n_slots, pb->rank, &order)
                  : order_of_all(from, pb, slots, &order);
    if (rc == COLL_OK)
        rc = coll__plan_reorder(plan, &order);
    free(order.lanes);
    if (rc)
        coll__plan_fini(plan);
    return rc;
}

static int build_fit(const void *algo, const struct coll__problem *pb,
                     const struct coll__slots *slots, struct coll__plan *plan)
{
    return coll__plan_build_fit(algo, pb, slots, plan);
}

int coll__plan_build_in_slot_order(const struct coll__algo *algo,
                                   const struct coll__problem *pb,
                                   const struct coll__slots *slots,
                                   struct coll__plan *plan)
{
    struct coll__builder from = {build_fit, algo};

    return coll__plan_in_slot_order(&from, pb, slots, plan);
}
