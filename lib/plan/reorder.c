/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.c - put a plan's steps into a given slot order (schedule.h).
 *
 * A local step may stand anywhere before the steps that wait for it: this does not
 * change whether the ranks finish.  It is placed just before a send that waits for it,
 * else before the next receive, since the rank may have to wait there.  A fused receive
 * and send must be neighbours; if a local step must stand between them, they are
 * separated.
 */
#include "lib/plan/schedule.h"
#include "lib/plan/waits.h"
#include "lib/trace/log.h"

#include <stdlib.h>

static int is_recv(const struct coll__step *step)
{
    return coll__step_is_recv(step->kind);
}

struct sorter {
    const struct coll__plan *plan;
    struct coll__waits waits;
    int *memory;                      /* memory of the arrays below */
    int *left;                        /* [n_steps]: edges still to come */
    int *order, n;                    /* the steps that have a place */
    int *ready, first_ready, n_ready; /* local steps that may get one */
    int *todo;                        /* [n_steps] */
    int *next, *head; /* lanes as in struct coll__slot_order; [n_steps],
                                       * [n_lanes] */
    unsigned char *has_place;         /* [n_steps]: has a place; 2: is about to get one */
    unsigned char *is_fused;          /* [n_steps] */
    int n_lanes;
};

static void place(struct sorter *s, int i)
{
    const struct coll__plan *plan = s->plan;

    s->has_place[i] = 1;
    s->order[s->n++] = i;
    for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
        if (--s->left[plan->after[e]] == 0 &&
            !coll__step_is_message(plan->steps[plan->after[e]].kind))
            s->ready[s->n_ready++] = plan->after[e];
}

static void place_ready(struct sorter *s)
{
    while (s->first_ready < s->n_ready) {
        int i = s->ready[s->first_ready++];

        if (!s->has_place[i])
            place(s, i);
    }
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Place the local steps that step i waits for, then step i.  Returns 0 if it waits for
 * a message that has no place yet. */
static int place_needed(struct sorter *s, int i)
{
    int n = 0, looked = 0;

    s->todo[n++] = i;
    for (; looked < n; looked++)
        for (int e = s->waits.first[s->todo[looked]];
             e < s->waits.first[s->todo[looked] + 1]; e++) {
            int before = s->waits.steps[e];

            if (s->has_place[before])
                continue;
            if (coll__step_is_message(s->plan->steps[before].kind))
                return 0;
            s->has_place[before] = 2;
            s->todo[n++] = before;
        }
    qsort(s->todo, (size_t)n, sizeof(int), ascending);
    for (int k = 0; k < n; k++)
        place(s, s->todo[k]);
    return 1;
}

static void join(struct sorter *s)
{
    int send = s->order[s->n - 1], recv = s->order[s->n - 2];

    s->is_fused[recv] = is_recv(&s->plan->steps[recv]) &&
                        coll__plan_passes_on(s->plan, recv, send);
}

static int take_message(struct sorter *s, int lane)
{
    int i = lane < s->n_lanes ? s->head[lane] : -1;

    if (i < 0)
        return 0;
    s->head[lane] = s->next[i];
    if (lane % 2) /* the rank may have to wait here: do local steps first */
        place_ready(s);
    return place_needed(s, i);
}

static void make_lanes(struct sorter *s)
{
    const struct coll__plan *plan = s->plan;

    for (int l = 0; l < s->n_lanes; l++)
        s->head[l] = -1;
    for (int i = plan->n_steps - 1; i >= 0; i--) {
        const struct coll__step *step = &plan->steps[i];
        int lane = 2 * step->peer + is_recv(step);

        s->left[i] = plan->n_deps[i];
        if (!coll__step_is_message(step->kind))
            continue;
        s->next[i] = s->head[lane];
        s->head[lane] = i;
    }
    for (int i = 0; i < plan->n_steps; i++)
        if (!s->left[i] && !coll__step_is_message(plan->steps[i].kind))
            s->ready[s->n_ready++] = i;
}

static int sorter_init(struct sorter *s, const struct coll__plan *plan)
{
    size_t n = (size_t)plan->n_steps;
    int rc = coll__waits_init(&s->waits, plan);

    s->plan = plan;
    for (int i = 0; i < plan->n_steps; i++)
        if (2 * plan->steps[i].peer + 2 > s->n_lanes)
            s->n_lanes = 2 * plan->steps[i].peer + 2;
    s->memory = malloc((5 * n + (size_t)s->n_lanes + 1) * sizeof(int));
    s->has_place = calloc(n + 1, 1);
    s->is_fused = calloc(n + 1, 1);
    if (rc || !s->memory || !s->has_place || !s->is_fused)
        return COLL_ERR_NOMEM;
    s->left = s->memory;
    s->order = s->memory + n;
    s->ready = s->memory + 2 * n;
    s->todo = s->memory + 3 * n;
    s->next = s->memory + 4 * n;
    s->head = s->memory + 5 * n;
    make_lanes(s);
    return COLL_OK;
}

static int sort(struct sorter *s, const struct coll__slot_order *order)
{
    int is_fused = 0;

    for (int t = 0; t < order->n; t++) {
        if (!take_message(s, order->lanes[t] & ~COLL__FUSED)) {
            log_error("plan",
                      "entry %d of the slot order is not a message that can be "
                      "sent or received then; this is a bug in libcoll",
                      t);
            return COLL_ERR_INVALID;
        }
        if (is_fused)
            join(s);
        is_fused = order->lanes[t] & COLL__FUSED;
    }
    place_ready(s);
    if (s->n == s->plan->n_steps)
        return COLL_OK;
    log_error("plan",
              "%d of %d steps are missing in the slot order; this is a bug in "
              "libcoll",
              s->plan->n_steps - s->n, s->plan->n_steps);
    return COLL_ERR_INVALID;
}

/* Put the steps into their new order and link the plan again. */
static int rewrite(struct coll__plan *plan, const struct sorter *s)
{
    struct coll__plan sorted = *plan;
    int rc;

    sorted.steps = malloc(((size_t)plan->n_steps + 1) * sizeof(*plan->steps));
    sorted.n_deps = sorted.first_after = sorted.after = sorted.same = NULL;
    if (!sorted.steps)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < plan->n_steps; i++) {
        sorted.steps[i] = plan->steps[s->order[i]];
        sorted.steps[i].is_fused = s->is_fused[s->order[i]];
    }
    sorted.cap_steps = plan->n_steps;
    rc = coll__plan_link(&sorted);
    if (rc) {
        coll__plan_fini(&sorted);
        return rc;
    }
    coll__plan_fini(plan);
    *plan = sorted;
    return COLL_OK;
}

int coll__plan_reorder(struct coll__plan *plan,
                       const struct coll__slot_order *order)
{
    struct sorter s = {0};
    int rc = sorter_init(&s, plan);

    if (rc == COLL_OK)
        rc = sort(&s, order);
    if (rc == COLL_OK)
        rc = rewrite(plan, &s);
    if (rc == COLL_OK)
        plan->n_slots = order->n_slots;
    if (rc == COLL_ERR_NOMEM)
        log_error("plan", "no memory to put %d steps in order", plan->n_steps);
    coll__waits_fini(&s.waits);
    free(s.memory);
    free(s.has_place);
    free(s.is_fused);
    return rc;
}
