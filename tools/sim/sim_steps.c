/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_steps.c - build each rank's plan in turn, and keep what a simulation needs. */
#include "tools/sim/sim_steps.h"
#include "lib/algo/algo.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

struct packer {
    struct coll__sim_steps *all;
    size_t cap_steps, cap_lanes, cap_after;
    int *slots; /* lanes by hash of their ranks, -1 free */
    size_t n_slots; /* a power of two, above twice the lanes */
};

/* Make room for n more items behind the first `used`; 0 without memory. */
static int reserve(void **items, size_t used, size_t n, size_t *cap,
                   size_t size)
{
    size_t want = max_size(used + n, *cap + *cap / 2);
    void *more;

    if (used + n <= *cap)
        return 1;
    if (used + n > INT_MAX)
        return 0;
    more = realloc(*items, want * size);
    if (!more)
        return 0;
    *items = more;
    *cap = want;
    return 1;
}

/* ---- lanes --------------------------------------------------------------- */

static size_t slot_of(const struct packer *k, int from, int to)
{
    uint64_t key = (uint64_t)from * 0x9e3779b97f4a7c15u + (uint64_t)to;
    size_t at;

    key ^= key >> 29;
    key *= 0xbf58476d1ce4e5b9u;
    at = (size_t)(key >> 32) & (k->n_slots - 1);
    while (k->slots[at] >= 0) {
        const struct coll__sim_lane *lane = &k->all->lanes[k->slots[at]];

        if (lane->from == from && lane->to == to)
            break;
        at = (at + 1) & (k->n_slots - 1);
    }
    return at;
}

/* Double the hash table; 0 without memory. */
static int grow_slots(struct packer *k)
{
    struct coll__sim_steps *all = k->all;
    size_t n = k->n_slots ? 2 * k->n_slots : 1024;
    int *slots = malloc(n * sizeof(*slots));

    if (!slots)
        return 0;
    free(k->slots);
    k->slots = slots;
    k->n_slots = n;
    for (size_t i = 0; i < n; i++)
        slots[i] = -1;
    for (int i = 0; i < all->n_lanes; i++)
        slots[slot_of(k, all->lanes[i].from, all->lanes[i].to)] = i;
    return 1;
}

/* Find a lane's number, or add the lane; -1 without memory. */
static int lane_of(struct packer *k, int from, int to)
{
    struct coll__sim_steps *all = k->all;
    size_t at;

    if (2 * (size_t)all->n_lanes >= k->n_slots && !grow_slots(k))
        return -1;
    at = slot_of(k, from, to);
    if (k->slots[at] >= 0)
        return k->slots[at];
    if (!reserve((void **)&all->lanes, (size_t)all->n_lanes, 1, &k->cap_lanes,
                 sizeof(*all->lanes)))
        return -1;
    all->lanes[all->n_lanes] = (struct coll__sim_lane){from, to, -1, -1, -1,
                                                       -1};
    k->slots[at] = all->n_lanes;
    return all->n_lanes++;
}

/* Append a step to its side of the lane. */
static void join_lane(struct coll__sim_steps *all, int i, int is_send)
{
    struct coll__sim_lane *lane = &all->lanes[all->steps[i].lane];
    int *first = is_send ? &lane->send : &lane->recv;
    int *last = is_send ? &lane->last_send : &lane->last_recv;

    if (*first < 0)
        *first = i;
    else
        all->steps[*last].next = i;
    *last = i;
}

/* ---- steps --------------------------------------------------------------- */

static int kind_of(const struct coll__step *step)
{
    switch (step->kind) {
    case STEP_SEND:
        return SIM_SEND;
    case STEP_RECV:
        return SIM_RECV;
    case STEP_RECV_REDUCE:
        return SIM_RECV_REDUCE;
    case STEP_ORDER:
        return SIM_FREE;
    case STEP_COPY: /* a copy that a call in place does not need costs nothing */
        return step->src.buf == BUF_IN && step->dst.buf == BUF_OUT ? SIM_FREE
                                                                   : SIM_WORK;
    default:
        return SIM_WORK;
    }
}

static int add_step(struct packer *k, int rank, const struct coll__step *step)
{
    struct coll__sim_steps *all = k->all;
    int i = all->n_steps++, is_send = step->kind == STEP_SEND, lane = rank;

    if (step->peer >= 0)
        lane = is_send ? lane_of(k, rank, step->peer)
                       : lane_of(k, step->peer, rank);
    if (lane < 0)
        return 0;
    all->steps[i] = (struct coll__sim_step){
        .len = is_send ? step->src.len : step->dst.len,
        .lane = lane,
        .next = -1,
        .first_after = all->n_after,
        .kind = (unsigned char)kind_of(step),
    };
    if (step->peer >= 0)
        join_lane(all, i, is_send);
    return 1;
}

static int add_plan(struct packer *k, int rank, const struct coll__plan *plan)
{
    struct coll__sim_steps *all = k->all;
    int base = all->n_steps, n = plan->n_steps;

    all->first[rank] = base;
    if (!reserve((void **)&all->steps, (size_t)base, (size_t)n + 1,
                 &k->cap_steps, sizeof(*all->steps)) ||
        !reserve((void **)&all->after, (size_t)all->n_after,
                 (size_t)plan->first_after[n], &k->cap_after,
                 sizeof(*all->after)))
        return 0;
    for (int i = 0; i < n; i++) {
        if (!add_step(k, rank, &plan->steps[i]))
            return 0;
        all->steps[base + i].waits = plan->n_deps[i];
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            all->after[all->n_after++] = base + plan->after[e];
    }
    return 1;
}

static int add_rank(struct packer *k, const struct coll__algo *algo,
                    const struct coll__problem *pb, int rank)
{
    struct coll__problem mine = *pb;
    struct coll__plan plan;
    int rc;

    mine.rank = rank;
    rc = coll__plan_build(algo, &mine, pb->view->chunk, &plan);
    if (rc)
        return rc;
    if (!add_plan(k, rank, &plan)) {
        log_error("plan", "no memory to simulate %d ranks of %d steps",
                  pb->nranks, plan.n_steps);
        rc = COLL_ERR_NOMEM;
    }
    coll__plan_fini(&plan);
    return rc;
}

/* ---- the whole ----------------------------------------------------------- */

/* Each send has a receive of its length. */
static int check_lane(const struct coll__sim_steps *all,
                      const struct coll__sim_lane *lane, const char *algorithm)
{
    const struct coll__sim_step *steps = all->steps;
    int s = lane->send, r = lane->recv;

    while (s >= 0 && r >= 0 && steps[s].len == steps[r].len) {
        s = steps[s].next;
        r = steps[r].next;
    }
    if (s < 0 && r < 0)
        return COLL_OK;
    log_error("plan", "%s: what rank %d sends to rank %d is not what that one "
              "receives; prove the plans first (--check)",
              algorithm, lane->from, lane->to);
    return COLL_ERR_INVALID;
}

int coll__sim_steps_init(struct coll__sim_steps *all,
                         const struct coll__algo *algo,
                         const struct coll__problem *pb)
{
    struct packer k = {.all = all};
    int rc = COLL_OK;

    *all = (struct coll__sim_steps){.nranks = pb->nranks};
    all->first = malloc(((size_t)pb->nranks + 1) * sizeof(*all->first));
    if (!all->first) {
        log_error("plan", "no memory to simulate %d ranks", pb->nranks);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < pb->nranks && rc == COLL_OK; r++)
        rc = add_rank(&k, algo, pb, r);
    free(k.slots);
    if (rc == COLL_OK) {
        all->first[all->nranks] = all->n_steps;
        all->steps[all->n_steps] =
            (struct coll__sim_step){.first_after = all->n_after};
    }
    for (int i = 0; i < all->n_lanes && rc == COLL_OK; i++)
        rc = check_lane(all, &all->lanes[i], algo->name);
    if (rc)
        coll__sim_steps_fini(all);
    return rc;
}

void coll__sim_steps_fini(struct coll__sim_steps *all)
{
    free(all->first);
    free(all->steps);
    free(all->lanes);
    free(all->after);
    *all = (struct coll__sim_steps){0};
}
