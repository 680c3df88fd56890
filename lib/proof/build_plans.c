/* SPDX-License-Identifier: BSD-3-Clause */
/* build_plans.c - build all ranks' plans of one problem, and prove them.
 *
 * Inferred edges order all steps that conflict.  Listed edges, from a file, must be
 * checked first: for each inferred edge there has to be a path along the listed ones.
 * Then any order of events gives the result of the list's own order, and one run of
 * the symbolic check covers all orders.
 */
#include "lib/proof/proof.h"
#include "lib/plan/waits.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VISITS (1 << 26) /* edges followed for one plan */

int coll__plans_build(struct coll__plans *plans, const struct coll__algo *algo,
                      const struct coll__problem *pbs, size_t chunk)
{
    size_t p = (size_t)pbs[0].nranks;
    const char *refusal = coll__algo_refuses(algo, &pbs[0]);
    int rc = COLL_OK;

    if (refusal) {
        log_error("plan", "%s %s", algo->name, refusal);
        return COLL_ERR_UNSUPPORTED;
    }
    *plans = (struct coll__plans){.chunk = chunk};
    snprintf(plans->algorithm, sizeof(plans->algorithm), "%s", algo->name);
    plans->pbs = malloc(p * sizeof(*pbs));
    plans->plans = calloc(p, sizeof(*plans->plans));
    if (!plans->pbs || !plans->plans) {
        log_error("plan", "no memory for %zu plans", p);
        free(plans->pbs);
        plans->pbs = NULL;
        coll__plans_fini(plans);
        return COLL_ERR_NOMEM;
    }
    memcpy(plans->pbs, pbs, p * sizeof(*pbs));
    for (size_t r = 0; r < p && rc == COLL_OK; r++)
        rc = coll__plan_build(algo, &pbs[r], chunk, &plans->plans[r]);
    if (rc)
        coll__plans_fini(plans);
    return rc;
}

/* ---- do the listed edges keep every hazard? ------------------------------- */

struct walk {
    struct coll__waits listed, inferred;
    int *seen;  /* [n_steps]: the last step whose search reached it */
    int *queue; /* [n_steps] */
    long n_visits;
};

/* Search back from step i along the listed edges, down to step `low`. */
static void go_back(struct walk *w, int i, int low)
{
    int n = 0, head = 0;

    w->queue[n++] = i;
    while (head < n && w->n_visits < MAX_VISITS) {
        int at = w->queue[head++];

        for (int e = w->listed.first[at]; e < w->listed.first[at + 1]; e++) {
            int step = w->listed.steps[e];

            w->n_visits++;
            if (step < low || w->seen[step] == i)
                continue;
            w->seen[step] = i;
            w->queue[n++] = step;
        }
    }
}

/* Return the first step that step i must wait for but does not; -1 none. */
static int not_waited_for(struct walk *w, int i)
{
    const int *hazards = w->inferred.steps + w->inferred.first[i];
    int n = w->inferred.first[i + 1] - w->inferred.first[i], missing = 0;

    for (int e = w->listed.first[i]; e < w->listed.first[i + 1]; e++)
        w->seen[w->listed.steps[e]] = i;
    for (int h = 0; h < n; h++)
        missing |= w->seen[hazards[h]] != i;
    if (!missing)
        return -1;
    for (int e = w->listed.first[i]; e < w->listed.first[i + 1]; e++)
        w->seen[w->listed.steps[e]] = -1;
    go_back(w, i, hazards[0]);
    for (int h = 0; h < n; h++)
        if (w->seen[hazards[h]] != i)
            return hazards[h];
    return -1;
}

static int walk_init(struct walk *w, const struct coll__plan *plan)
{
    struct coll__plan linked = {.steps = plan->steps, .n_steps = plan->n_steps};
    size_t n = (size_t)plan->n_steps + 1;
    int rc = coll__plan_link(&linked);

    if (rc == COLL_OK)
        rc = coll__waits_init(&w->inferred, &linked);
    if (rc == COLL_OK)
        rc = coll__waits_init(&w->listed, plan);
    linked.steps = NULL; /* the plan's own */
    coll__plan_fini(&linked);
    w->seen = malloc(n * sizeof(int));
    w->queue = malloc(n * sizeof(int));
    if (rc || !w->seen || !w->queue)
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        w->seen[i] = -1;
    return COLL_OK;
}

static void walk_fini(struct walk *w)
{
    coll__waits_fini(&w->inferred);
    coll__waits_fini(&w->listed);
    free(w->seen);
    free(w->queue);
}

static int check_edges(const struct coll__plan *plan, int rank, char *why,
                       size_t len)
{
    struct walk w = {0};
    int rc = walk_init(&w, plan);

    if (rc)
        snprintf(why, len, "no memory to check rank %d's edges", rank);
    for (int i = 0; i < plan->n_steps && rc == COLL_OK; i++) {
        int missing = not_waited_for(&w, i);

        if (w.n_visits >= MAX_VISITS) {
            snprintf(why, len,
                     "rank %d's edges are too many to follow; list "
                     "the direct ones or say 'edges inferred'",
                     rank);
            rc = COLL_ERR_INVALID;
        } else if (missing >= 0) {
            snprintf(why, len,
                     "rank %d step %d does not wait for step %d, "
                     "which touches the same bytes",
                     rank, i, missing);
            rc = COLL_ERR_INVALID;
        }
    }
    walk_fini(&w);
    return rc;
}

int coll__plans_check(const struct coll__plans *plans, int n_seeds, char *why,
                      size_t len)
{
    int rc = COLL_OK;

    for (int r = 0; r < plans->pbs[0].nranks && rc == COLL_OK; r++)
        if (plans->has_edges)
            rc = check_edges(&plans->plans[r], r, why, len);
    for (int s = 0; s < n_seeds && rc == COLL_OK; s++)
        rc = coll__plan_check(plans->pbs, plans->plans, (unsigned)s + 1, why,
                              len);
    return rc;
}
