/* SPDX-License-Identifier: BSD-3-Clause */
/* list_order.c - can every rank run its plan step by step, as listed?
 *
 * A receive waits for its message, and a send for a free slot; there are n_slots slots
 * between two ranks in each direction.  Each rank does one step after the other, each
 * message comes from one place, and each slot is freed by one rank.  So the ranks'
 * speeds do not decide whether all finish (a Kahn network, in which a freed slot is a
 * message the other way): one run tells.  Plans that finish with some slots finish
 * with more; a link that the host carries has as many at both ends (transports/proxy.h).
 * A receive that is fused with the next step runs when both can run.
 *
 * Source: Kahn, The semantics of a simple language for parallel programming, IFIP
 * Congress 1974.
 */
#include "lib/plan/intern.h"
#include "lib/proof/proof.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>

struct walk {
    const struct coll__plan *plans;
    int nranks, n_slots;
    int *at;         /* [nranks]: the step that each rank is at */
    int *waiting_on; /* [rank]: the first rank that waits for this rank to send it a
                      * message, or to receive one; next_waiting has the next */
    int *next_waiting;
    struct coll__numbers pairs; /* (from, to) with messages so far */
    int *n_under_way, cap;      /* [pairs.n] */
    int *todo, n_todo;          /* ranks that may be able to go on */
};

/* Return the counter of messages under way between two ranks; NULL without memory. */
static int *under_way(struct walk *w, int from, int to)
{
    int n_before = w->pairs.n;
    int pair = coll__number(&w->pairs, (uint64_t)from * (uint64_t)w->nranks +
                                           (uint64_t)to);

    if (pair < 0)
        return NULL;
    if (pair >= w->cap) {
        int cap = 2 * pair + 64;
        int *more = realloc(w->n_under_way, (size_t)cap * sizeof(int));

        if (!more)
            return NULL;
        w->n_under_way = more;
        w->cap = cap;
    }
    if (pair == n_before)
        w->n_under_way[pair] = 0;
    return &w->n_under_way[pair];
}

/* `rank` has sent a message to its peer, or received one: if the peer waits for this
 * rank, let it try again. */
static void wake(struct walk *w, int rank, int peer)
{
    int *at = &w->waiting_on[rank];

    while (*at >= 0 && *at != peer)
        at = &w->next_waiting[*at];
    if (*at < 0)
        return;
    *at = w->next_waiting[peer];
    w->todo[w->n_todo++] = peer;
}

static void wait_on(struct walk *w, int rank, int peer)
{
    w->next_waiting[rank] = w->waiting_on[peer];
    w->waiting_on[peer] = rank;
}

/* Can the message of this step be sent or received now?  If not, the rank waits for its
 * peer from now on.  COLL_OK, COLL_IN_PROGRESS or COLL_ERR_NOMEM. */
static int look(struct walk *w, int rank, const struct coll__step *step)
{
    int is_recv = coll__step_is_recv(step->kind), *n;

    n = is_recv ? under_way(w, step->peer, rank)
                : under_way(w, rank, step->peer);
    if (!n)
        return COLL_ERR_NOMEM;
    if (is_recv ? *n > 0 : *n < w->n_slots)
        return COLL_OK;
    wait_on(w, rank, step->peer);
    return COLL_IN_PROGRESS;
}

static void pass(struct walk *w, int rank, const struct coll__step *step)
{
    int is_recv = coll__step_is_recv(step->kind);

    *(is_recv ? under_way(w, step->peer, rank)
              : under_way(w, rank, step->peer)) += is_recv ? -1 : 1;
    wake(w, rank, step->peer);
}

/* Run a rank's steps as far as they go; COLL_OK or COLL_ERR_NOMEM. */
static int go_on(struct walk *w, int rank)
{
    const struct coll__plan *plan = &w->plans[rank];

    while (w->at[rank] < plan->n_steps) {
        const struct coll__step *step = &plan->steps[w->at[rank]];
        int is_message = coll__step_is_message(step->kind);
        int n = step->is_fused ? 2 : 1, rc = COLL_OK;

        for (int k = 0; k < n && is_message && rc == COLL_OK; k++)
            rc = look(w, rank, &step[k]);
        if (rc)
            return rc == COLL_IN_PROGRESS ? COLL_OK : rc;
        for (int k = 0; k < n && is_message; k++)
            pass(w, rank, &step[k]);
        w->at[rank] += n;
    }
    return COLL_OK;
}

static int walk_init(struct walk *w)
{
    size_t n = (size_t)w->nranks;

    w->at = calloc(n, sizeof(int));
    w->waiting_on = malloc(n * sizeof(int));
    w->next_waiting = malloc(n * sizeof(int));
    w->todo = malloc(n * sizeof(int));
    if (!w->at || !w->waiting_on || !w->next_waiting || !w->todo ||
        coll__numbers_init(&w->pairs, 0))
        return COLL_ERR_NOMEM;
    for (int r = 0; r < w->nranks; r++) {
        w->waiting_on[r] = -1;
        w->todo[w->n_todo++] = w->nranks - 1 - r;
    }
    return COLL_OK;
}

static void walk_fini(struct walk *w)
{
    coll__numbers_fini(&w->pairs);
    free(w->at);
    free(w->waiting_on);
    free(w->next_waiting);
    free(w->n_under_way);
    free(w->todo);
}

/* Run all plans.  COLL_ERR_INVALID sets *stuck to the first rank that does not finish. */
static int walk_all(const struct coll__plan *plans, int nranks, int n_slots,
                    int *stuck, int *step)
{
    struct walk w = {.plans = plans, .nranks = nranks, .n_slots = n_slots};
    int rc = walk_init(&w);

    while (rc == COLL_OK && w.n_todo)
        rc = go_on(&w, w.todo[--w.n_todo]);
    for (int r = 0; r < nranks && rc == COLL_OK; r++)
        if (w.at[r] < plans[r].n_steps) {
            *stuck = r;
            *step = w.at[r];
            rc = COLL_ERR_INVALID;
        }
    if (rc == COLL_ERR_NOMEM)
        log_error("plan", "no memory to walk the plans of %d ranks", nranks);
    walk_fini(&w);
    return rc;
}

int coll__plans_run_as_listed(const struct coll__plan *plans, int nranks,
                              int n_slots, char *why, size_t len)
{
    int stuck, step, rc = walk_all(plans, nranks, n_slots, &stuck, &step);

    if (rc == COLL_ERR_INVALID && n_slots == COLL__ANY_SLOTS)
        snprintf(why, len, "as listed, rank %d waits for ever at step %d",
                 stuck, step);
    else if (rc == COLL_ERR_INVALID)
        snprintf(why, len,
                 "as listed, with %d messages under way between two ranks at "
                 "most, rank %d waits for ever at step %d",
                 n_slots, stuck, step);
    return rc;
}

int coll__plans_slots(const struct coll__plan *plans, int nranks, int *n_slots)
{
    int stuck, step, few = 0, enough = 1, rc;

    while ((rc = walk_all(plans, nranks, enough, &stuck, &step)) ==
               COLL_ERR_INVALID &&
           enough < COLL__ANY_SLOTS / 2) {
        few = enough;
        enough *= 2;
    }
    while (rc == COLL_OK && enough - few > 1) {
        int half = few + (enough - few) / 2;

        rc = walk_all(plans, nranks, half, &stuck, &step);
        *(rc == COLL_OK ? &enough : &few) = half;
        rc = rc == COLL_ERR_INVALID ? COLL_OK : rc;
    }
    *n_slots = rc == COLL_OK ? enough : 0;
    return rc;
}
