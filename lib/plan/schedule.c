/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.c - simulate all ranks with few slots, and find the slot order of that run.
 *
 * If a message can be sent or received now, no other message can prevent it: only its
 * own rank takes the slots of its lane, in order.  So the order in which the possible
 * messages are carried out does not change whether all ranks finish.  Plans that finish
 * without buffering (a message passes when both ends are ready, lib/proof/check.c)
 * finish with any number of slots.
 *
 * This also holds if a rank receives one message and sends another at the same time,
 * when the first is there and the second has a free slot.  But ranks in a ring whose
 * slots are all full may then wait for each other.  Everything done so far could have
 * been done one by one.  So if no rank can continue, the fused pairs whose message has
 * arrived are separated into two steps, and the ranks continue.
 *
 * A simulated run gives one order for each rank in which all ranks finish.  They then
 * finish in these orders whatever their speeds (lib/proof/list_order.c).
 */
#include "lib/plan/schedule.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- a run of all ranks -------------------------------------------------- */

/* A queue of steps that can go on, in the order of arrival. */
struct line {
    int *steps, first, n;
};

struct rank {
    const struct coll__plan *plan;
    int *memory;  /* memory of the arrays below */
    int *left;    /* [n_steps]: edges still to come */
    int *next;    /* [n_steps]: the next step on the same lane; -1 none */
    /* [n_steps]: for a receive, the send that is fused with it, and the other way
     * round; -1 none */
    int *fused;
    int *head[2]; /* [p]: the first message of a lane that is not done, or -1 */
    int *under_way;         /* [p]: messages sent there, not received yet */
    struct line able[2];    /* sends, receives */
    int *todo, n_todo;      /* local steps that are done at once */
    unsigned char *is_able; /* [n_steps]: it is, or was, in a queue */
    int n_done;
};

struct run {
    struct rank *ranks;
    int p, n_slots;
    struct coll__slot_order *order;
    int whose;
};

static int is_recv(const struct coll__step *step)
{
    return coll__step_is_recv(step->kind);
}

/* Is message i the next one of its lane, and is it there (a receive) or is a slot free
 * (a send)? */
static int may_pass(const struct run *run, int r, int i)
{
    const struct rank *rank = &run->ranks[r];
    const struct coll__step *step = &rank->plan->steps[i];
    int dir = is_recv(step);

    return rank->head[dir][step->peer] == i &&
           (dir ? run->ranks[step->peer].under_way[r] > 0
                : rank->under_way[step->peer] < run->n_slots);
}

/* Queue message i if it can be sent or received now; a fused pair is queued as its
 * receive. */
static void consider(struct run *run, int r, int i)
{
    struct rank *rank = &run->ranks[r];
    int other = i < 0 ? -1 : rank->fused[i], dir;

    if (other >= 0 && !is_recv(&rank->plan->steps[i])) {
        other = i;
        i = rank->fused[i];
    }
    if (i < 0 || rank->left[i] || rank->is_able[i] || !may_pass(run, r, i) ||
        (other >= 0 && !may_pass(run, r, other)))
        return;
    rank->is_able[i] = 1;
    dir = other < 0 && is_recv(&rank->plan->steps[i]);
    rank->able[dir].steps[rank->able[dir].n++] = i;
}

/* Step i is done: queue the messages that waited only for it, and do such local steps
 * at once. */
static void finish(struct run *run, int r, int i)
{
    struct rank *rank = &run->ranks[r];
    const struct coll__plan *plan = rank->plan;

    rank->todo[rank->n_todo++] = i;
    while (rank->n_todo) {
        i = rank->todo[--rank->n_todo];
        rank->n_done++;
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            int next = plan->after[e];

            if (--rank->left[next])
                continue;
            if (coll__step_is_message(plan->steps[next].kind))
                consider(run, r, next);
            else
                rank->todo[rank->n_todo++] = next;
        }
    }
}

static void pass(struct run *run, int r, int i)
{
    const struct coll__step *step = &run->ranks[r].plan->steps[i];
    int dir = is_recv(step), peer = step->peer;
    struct rank *rank = &run->ranks[r], *other = &run->ranks[peer];

    if (r == run->whose)
        run->order->lanes[run->order->n++] =
            2 * peer + dir + (dir && rank->fused[i] >= 0 ? COLL__FUSED : 0);
    if (dir)
        other->under_way[r]--;
    else
        rank->under_way[peer]++;
    rank->head[dir][peer] = rank->next[i];
    consider(run, r, rank->next[i]);
    finish(run, r, i);
    consider(run, peer, other->head[!dir][r]);
}

/* Take the rank's next message that can go on, or -1. */
static int choose(struct rank *rank)
{
    for (int dir = 0; dir < 2; dir++)
        if (rank->able[dir].first < rank->able[dir].n)
            return rank->able[dir].steps[rank->able[dir].first++];
    return -1;
}

/* Choose for all ranks before any message goes on. */
static int go_round(struct run *run, int *chosen)
{
    int n = 0;

    for (int r = 0; r < run->p; r++) {
        chosen[r] = choose(&run->ranks[r]);
        n += chosen[r] >= 0;
    }
    for (int r = 0; r < run->p; r++)
        if (chosen[r] >= 0) {
            int other = run->ranks[r].fused[chosen[r]];

            pass(run, r, chosen[r]);
            if (other >= 0)
                pass(run, r, other);
        }
    return n;
}

/* Part the pairs whose message is there; returns how many. */
static int part_pairs(struct run *run)
{
    int n = 0;

    for (int r = 0; r < run->p; r++)
        for (int peer = 0; peer < run->p; peer++) {
            struct rank *rank = &run->ranks[r];
            int i = rank->head[1][peer];

            if (i < 0 || rank->fused[i] < 0 || rank->left[i] ||
                !may_pass(run, r, i))
                continue;
            rank->fused[rank->fused[i]] = -1;
            rank->fused[i] = -1;
            consider(run, r, i);
            n++;
        }
    return n;
}

static void start_rank(struct run *run, int r)
{
    struct rank *rank = &run->ranks[r];
    const struct coll__plan *plan = rank->plan;

    for (int i = 0; i < plan->n_steps; i++) {
        if (plan->n_deps[i])
            continue;
        if (coll__step_is_message(plan->steps[i].kind))
            consider(run, r, i);
        else
            finish(run, r, i);
    }
}

/* Fuse each receive with the first send of exactly the bytes that it leaves, if that
 * send waits for nothing else. */
static void find_pairs(struct rank *rank)
{
    const struct coll__plan *plan = rank->plan;

    for (int i = 0; i < plan->n_steps; i++)
        rank->fused[i] = -1;
    for (int i = 0; i < plan->n_steps; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            int to = plan->after[e];

            if (!is_recv(&plan->steps[i]) || rank->fused[i] >= 0 ||
                !coll__plan_passes_on(plan, i, to))
                continue;
            rank->fused[i] = to;
            rank->fused[to] = i;
        }
}

static int rank_init(struct rank *rank, const struct coll__plan *plan, int p)
{
    size_t n = (size_t)plan->n_steps, q = (size_t)p;
    int *memory = rank->memory = malloc((6 * n + 3 * q + 1) * sizeof(int));

    rank->plan = plan;
    rank->is_able = calloc(n + 1, 1);
    if (!memory || !rank->is_able)
        return COLL_ERR_NOMEM;
    rank->left = memory;
    rank->next = memory + n;
    rank->able[0].steps = memory + 2 * n;
    rank->able[1].steps = memory + 3 * n;
    rank->todo = memory + 4 * n;
    rank->fused = memory + 5 * n;
    rank->head[0] = memory + 6 * n;
    rank->head[1] = rank->head[0] + q;
    rank->under_way = rank->head[1] + q;
    for (int i = 0; i < 2 * p; i++)
        rank->head[0][i] = -1;
    memset(rank->under_way, 0, q * sizeof(int));
    for (int i = plan->n_steps - 1; i >= 0; i--) {
        const struct coll__step *step = &plan->steps[i];

        rank->left[i] = plan->n_deps[i];
        if (!coll__step_is_message(step->kind))
            continue;
        rank->next[i] = rank->head[is_recv(step)][step->peer];
        rank->head[is_recv(step)][step->peer] = i;
    }
    find_pairs(rank);
    return COLL_OK;
}

static int run_all(struct run *run)
{
    int *chosen = malloc((size_t)run->p * sizeof(int));

    if (!chosen)
        return COLL_ERR_NOMEM;
    for (int r = 0; r < run->p; r++)
        start_rank(run, r);
    while (go_round(run, chosen) || part_pairs(run))
        ;
    free(chosen);
    for (int r = 0; r < run->p; r++)
        if (run->ranks[r].n_done != run->ranks[r].plan->n_steps)
            return COLL_ERR_INVALID;
    return COLL_OK;
}

/* ---- whose turn it is ---------------------------------------------------- */

static int count_messages(const struct coll__plan *plan)
{
    int n = 0;

    for (int i = 0; i < plan->n_steps; i++)
        n += coll__step_is_message(plan->steps[i].kind);
    return n;
}

static int order_init(struct coll__slot_order *order,
                      const struct coll__plan *plan, int n_slots)
{
    *order = (struct coll__slot_order){.n_slots = n_slots};
    order->lanes =
        malloc(((size_t)count_messages(plan) + 1) * sizeof(*order->lanes));
    return order->lanes ? COLL_OK : COLL_ERR_NOMEM;
}

static int no_order(struct coll__slot_order *order, int rc, int nranks)
{
    if (rc == COLL_ERR_NOMEM)
        log_error("plan", "no memory to put %d plans in order", nranks);
    if (rc == COLL_ERR_INVALID)
        log_error("plan", "plans of %d ranks get stuck in any order", nranks);
    if (rc) {
        free(order->lanes);
        *order = (struct coll__slot_order){0};
    }
    return rc;
}

int coll__plans_slot_order(const struct coll__plan *plans, int nranks,
                           int n_slots, int rank,
                           struct coll__slot_order *order)
{
    struct run run = {
        .p = nranks, .n_slots = n_slots, .order = order, .whose = rank};
    int rc = order_init(order, &plans[rank], n_slots);

    run.ranks = calloc((size_t)nranks, sizeof(*run.ranks));
    if (!run.ranks)
        rc = COLL_ERR_NOMEM;
    for (int r = 0; r < nranks && rc == COLL_OK; r++)
        rc = rank_init(&run.ranks[r], &plans[r], nranks);
    if (rc == COLL_OK)
        rc = run_all(&run);
    for (int r = 0; r < nranks && run.ranks; r++) {
        free(run.ranks[r].memory);
        free(run.ranks[r].is_able);
    }
    free(run.ranks);
    return no_order(order, rc, nranks);
}

/* The place of a message in the slot order, from numbers that both of its ends know. */
struct when {
    int round, piece; /* from the distance of the ranks; of the message on its lane */
    int lane;
};

/* In a round, the receive of a message comes n_slots - 1 messages later than the send
 * with the same number. */
static int compare(const void *a, const void *b)
{
    const struct when *x = a, *y = b;

    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    return x->lane % 2 - y->lane % 2;
}

int coll__plan_slot_order_alone(const struct coll__plan *plan, int nranks,
                                int n_slots, int rank,
                                struct coll__slot_order *order)
{
    int *n_on = calloc(2 * (size_t)nranks, sizeof(int)); /* each lane */
    struct when *whens = malloc(((size_t)plan->n_steps + 1) * sizeof(*whens));
    int rc = order_init(order, plan, n_slots);

    if (!n_on || !whens)
        rc = COLL_ERR_NOMEM;
    for (int i = 0; i < plan->n_steps && rc == COLL_OK; i++) {
        const struct coll__step *step = &plan->steps[i];
        int dir = is_recv(step), lane = 2 * step->peer + dir;
        int ahead = dir ? rank - step->peer : step->peer - rank;

        if (coll__step_is_message(step->kind))
            whens[order->n++] =
                (struct when){.round = (ahead + nranks) % nranks,
                              .piece = n_on[lane]++ + (dir ? n_slots - 1 : 0),
                              .lane = lane};
    }
    if (rc == COLL_OK)
        qsort(whens, (size_t)order->n, sizeof(*whens), compare);
    for (int i = 0; i < order->n && rc == COLL_OK; i++)
        order->lanes[i] = whens[i].lane;
    free(n_on);
    free(whens);
    return no_order(order, rc, nranks);
}
