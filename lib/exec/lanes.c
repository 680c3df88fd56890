/* SPDX-License-Identifier: BSD-3-Clause */
/* lanes.c - run a plan: local steps from a queue, messages from lanes.
 *
 * A local step ends when it starts.  A message ends by its status.
 *
 * A lane holds the messages of one peer and direction in the plan's order.  A
 * message is issued when the steps that it depends on are done and all messages
 * before it on its lane have been issued.  It is tested for completion when all
 * messages before it are complete.  So the cost of a round grows with the number of
 * lanes, not with the number of messages under way.
 */
#include "lib/exec/prog.h"
#include "lib/util/map.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

struct lane {
    struct coll__tp *tp;
    int peer, is_recv;
    int *steps; /* [n_steps], in order; within lane_steps */
    int n_steps, n_issued, n_done;
};

struct coll__lanes {
    int *left;    /* [n_steps]: edges still to come */
    int *lane_of; /* [n_steps]: -1 for a local step */
    struct lane *lanes;
    int n_lanes, *lane_steps;
    int *ready, n_ready, n_taken; /* local steps, in order of readiness */
    int n_done;
};

/* ---- making ------------------------------------------------------------------ */

/* There are no more than that. */
static size_t count_lanes(const struct coll__prog *prog)
{
    return min_size((size_t)prog->plan.n_steps + 1, 2 * (size_t)prog->nranks);
}

/* Append message i to the lane of its peer and direction. */
static void join_lane(struct coll__prog *prog, struct coll__map *map, int i)
{
    const struct coll__step *step = &prog->plan.steps[i];
    struct coll__lanes *lanes = prog->lanes;
    int is_recv = coll__step_is_recv(step->kind);
    int *at = coll__map_at(map, 2 * (uint64_t)step->peer + (unsigned)is_recv);

    if (*at < 0) {
        *at = lanes->n_lanes;
        lanes->lanes[lanes->n_lanes++] =
            (struct lane){.tp = prog->routes->to[step->peer],
                          .peer = step->peer,
                          .is_recv = is_recv};
    }
    lanes->lane_of[i] = *at;
    lanes->lanes[*at].n_steps++;
}

/* Count each lane's messages, give the lane its part of lane_steps, and fill it. */
static int fill_lanes(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    struct coll__lanes *lanes = prog->lanes;
    int *next = lanes->lane_steps;
    struct coll__map map;
    int rc = coll__map_init(&map, count_lanes(prog));

    for (int i = 0; i < plan->n_steps && rc == COLL_OK; i++) {
        lanes->lane_of[i] = -1;
        if (coll__step_is_message(plan->steps[i].kind))
            join_lane(prog, &map, i);
    }
    coll__map_fini(&map);
    for (int l = 0; l < lanes->n_lanes; l++) {
        lanes->lanes[l].steps = next;
        next += lanes->lanes[l].n_steps;
        lanes->lanes[l].n_steps = 0;
    }
    for (int i = 0; i < plan->n_steps && rc == COLL_OK; i++)
        if (lanes->lane_of[i] >= 0) {
            struct lane *lane = &lanes->lanes[lanes->lane_of[i]];

            lane->steps[lane->n_steps++] = i;
        }
    return rc;
}

static int make(struct coll__prog *prog)
{
    size_t n = (size_t)prog->plan.n_steps + 1;
    struct coll__lanes *lanes = prog->lanes = calloc(1, sizeof(*lanes));

    if (!lanes)
        return COLL_ERR_NOMEM;
    lanes->left = malloc(n * sizeof(int));
    lanes->lane_of = malloc(n * sizeof(int));
    lanes->lane_steps = malloc(n * sizeof(int));
    lanes->ready = malloc(n * sizeof(int));
    lanes->lanes = malloc(count_lanes(prog) * sizeof(*lanes->lanes));
    if (!lanes->left || !lanes->lane_of || !lanes->lane_steps ||
        !lanes->ready || !lanes->lanes)
        return COLL_ERR_NOMEM;
    return fill_lanes(prog);
}

static void destroy(struct coll__prog *prog)
{
    struct coll__lanes *lanes = prog->lanes;

    if (!lanes)
        return;
    free(lanes->left);
    free(lanes->lane_of);
    free(lanes->lane_steps);
    free(lanes->ready);
    free(lanes->lanes);
    free(lanes);
}

static size_t bytes(const struct coll__prog *prog)
{
    size_t n = (size_t)prog->plan.n_steps + 1;
    const struct coll__lanes *lanes = prog->lanes;

    return sizeof(*lanes) + 4 * n * sizeof(int) +
           count_lanes(prog) * sizeof(*lanes->lanes);
}

/* ---- what is ready ----------------------------------------------------------- */

static void issue(struct coll__prog *prog, const struct lane *lane, int i)
{
    struct coll__xfer *xfer = &prog->xfers[i];

    coll__prog_address(prog, i);
    if (lane->is_recv)
        lane->tp->ops->recv(lane->tp, xfer);
    else
        lane->tp->ops->send(lane->tp, xfer);
}

static void issue_ready(struct coll__prog *prog, struct lane *lane)
{
    while (lane->n_issued < lane->n_steps &&
           prog->lanes->left[lane->steps[lane->n_issued]] == 0)
        issue(prog, lane, lane->steps[lane->n_issued++]);
}

/* All steps that step i waits for are done: queue it, or issue its message. */
static void make_ready(struct coll__prog *prog, int i)
{
    struct coll__lanes *lanes = prog->lanes;

    if (lanes->lane_of[i] < 0)
        lanes->ready[lanes->n_ready++] = i;
    else
        issue_ready(prog, &lanes->lanes[lanes->lane_of[i]]);
}

static void complete(struct coll__prog *prog, int i)
{
    const struct coll__plan *plan = &prog->plan;
    struct coll__lanes *lanes = prog->lanes;

    lanes->n_done++;
    for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
        if (--lanes->left[plan->after[e]] == 0)
            make_ready(prog, plan->after[e]);
}

/* ---- local steps ------------------------------------------------------------- */

static int run_ready(struct coll__prog *prog)
{
    struct coll__lanes *lanes = prog->lanes;
    int before = lanes->n_taken;

    while (lanes->n_taken < lanes->n_ready) {
        int i = lanes->ready[lanes->n_taken++];

        coll__prog_local(prog, i);
        complete(prog, i);
    }
    return lanes->n_taken - before;
}

/* ---- rounds ------------------------------------------------------------------ */

/* Complete the finished messages of a lane.  Returns how many, or a failed status. */
static int harvest(struct coll__prog *prog, struct lane *lane)
{
    int before = lane->n_done;

    while (lane->n_done < lane->n_issued) {
        int i = lane->steps[lane->n_done];
        int status = prog->xfers[i].status;

        if (status == COLL_IN_PROGRESS)
            break;
        if (status != COLL_OK) {
            prog->run.fault = &prog->xfers[i];
            return status;
        }
        lane->n_done++;
        complete(prog, i);
    }
    return lane->n_done - before;
}

static void start(struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    struct coll__lanes *lanes = prog->lanes;

    lanes->n_ready = lanes->n_taken = lanes->n_done = 0;
    if (plan->n_steps)
        memcpy(lanes->left, plan->n_deps, (size_t)plan->n_steps * sizeof(int));
    for (int l = 0; l < lanes->n_lanes; l++)
        lanes->lanes[l].n_issued = lanes->lanes[l].n_done = 0;
    for (int i = 0; i < plan->n_steps; i++)
        if (lanes->lane_of[i] < 0 && !lanes->left[i])
            lanes->ready[lanes->n_ready++] = i;
    for (int l = 0; l < lanes->n_lanes; l++)
        issue_ready(prog, &lanes->lanes[l]);
}

static int look(struct coll__prog *prog, int *moved)
{
    *moved |= run_ready(prog) > 0;
    return COLL_IN_PROGRESS;
}

static int advance(struct coll__prog *prog, int *moved)
{
    struct coll__lanes *lanes = prog->lanes;
    int n = run_ready(prog);

    for (int l = 0; l < lanes->n_lanes; l++) {
        int rc = harvest(prog, &lanes->lanes[l]);

        if (rc < 0)
            return rc;
        n += rc;
    }
    n += run_ready(prog);
    *moved |= n > 0;
    return lanes->n_done == prog->plan.n_steps ? COLL_OK : COLL_IN_PROGRESS;
}

static int serves(const struct coll__prog *prog)
{
    (void)prog;
    return 1;
}

const struct coll__engine coll__engine_lanes = {
    .serves = serves,
    .make = make,
    .destroy = destroy,
    .bytes = bytes,
    .on_device = coll__no_on_device,
    .start = start,
    .look = look,
    .advance = advance,
};
