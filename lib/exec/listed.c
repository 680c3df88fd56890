/* SPDX-License-Identifier: BSD-3-Clause */
/* listed.c - run a plan step by step, in list order.
 *
 * Plans of the builders cannot deadlock in list order as long as sends complete without
 * the receiver (lib/proof/list_order.c proves it).  A transport's put() is such a send
 * while the messages between two ranks fit its capacity.  This engine refuses plans with
 * more messages or larger ones.
 *
 * Ranks that share a core yield while they wait.  But once all ranks of its core have
 * sent their messages to this rank, they wait too, and like this rank for a message from
 * another core.  That message comes sooner than a round of yields, so the rank polls
 * instead of yielding.  Two cores with four ranks each then take 3 context switches an
 * operation, the least possible, rather than 3.5.  In a tree a rank does not receive from
 * all others, and a rank on its core may still have work: then it yields.
 */
#include "lib/exec/prog.h"

#include <sched.h>

#define MAX_STEPS 256

/* Count the messages up to step i between the same ranks in the same direction. */
static int count_alike(const struct coll__plan *plan, int i)
{
    const struct coll__step *step = &plan->steps[i];
    int n = 0;

    for (int j = 0; j <= i; j++)
        n += plan->steps[j].peer == step->peer &&
             (plan->steps[j].kind == STEP_SEND) == (step->kind == STEP_SEND);
    return n;
}

static int serves(const struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;

    if (prog->is_p2p || !plan->runs_as_listed || plan->n_steps > MAX_STEPS)
        return 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        const struct coll__tp *tp;
        size_t len = step->kind == STEP_SEND ? step->src.len : step->dst.len;

        if (step->peer < 0)
            continue;
        tp = prog->routes->to[step->peer];
        if (len > tp->eager || count_alike(plan, i) > tp->ahead)
            return 0;
    }
    return 1;
}

static int put(struct coll__tp *tp, struct coll__xfer *xfer)
{
    return tp->ops->put(tp, xfer) ? COLL_OK : COLL_IN_PROGRESS;
}

static int take(struct coll__prog *prog, struct coll__tp *tp,
                struct coll__xfer *xfer, int looks)
{
    int rc = tp->ops->take(tp, xfer);

    while (rc == COLL_IN_PROGRESS && looks-- > 0)
        rc = tp->ops->take(tp, xfer);
    if (rc < 0)
        prog->run.fault = xfer;
    return rc;
}

static int go_on(struct coll__prog *prog, int looks)
{
    const struct coll__plan *plan = &prog->plan;

    for (; prog->listed.at < plan->n_steps; prog->listed.at++) {
        const struct coll__step *step = &plan->steps[prog->listed.at];
        struct coll__xfer *xfer = &prog->xfers[prog->listed.at];
        struct coll__tp *tp;
        int rc;

        if (step->peer < 0) {
            coll__prog_local(prog, prog->listed.at);
            continue;
        }
        tp = prog->routes->to[step->peer];
        coll__prog_address(prog, prog->listed.at);
        rc = step->kind == STEP_SEND ? put(tp, xfer)
                                     : take(prog, tp, xfer, looks);
        if (rc)
            return rc;
    }
    return COLL_OK;
}

static void start(struct coll__prog *prog)
{
    prog->listed.at = 0;
    go_on(prog, 0);
}

/* ---- ranks that share cores ----------------------------------------------
 *
 * Each rank publishes 1 + the core on which it waits; 0: unknown.
 */

static int hears_all(const struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    int n = 0;

    for (int i = 0; i < plan->n_steps; i++) {
        int peer = plan->steps[i].peer;
        atomic_int **published;

        if (!coll__step_is_recv(plan->steps[i].kind) ||
            count_alike(plan, i) > 1)
            continue;
        published = prog->routes->to[peer]->published;
        n += published && published[peer];
    }
    return n == prog->nranks - 1;
}

/* Tell the other ranks this rank's core, if it has changed.  Returns 1 + the core; 0 if
 * it is unknown. */
static int tell_core(const struct coll__tp *tp)
{
    atomic_int *mine = tp->published[tp->rank];
    int core = 1 + sched_getcpu();

    if (atomic_load_explicit(mine, memory_order_relaxed) != core)
        atomic_store_explicit(mine, core, memory_order_relaxed);
    return core;
}

/* May rank `peer` need this core?  Its own core may be unknown. */
static int may_share(const struct coll__tp *tp, int peer, int core)
{
    int other = atomic_load_explicit(tp->published[peer], memory_order_relaxed);

    return !other || other == core;
}

/* Have all messages arrived that ranks of this core still had to send? */
static int waits_for_others(const struct coll__prog *prog)
{
    const struct coll__plan *plan = &prog->plan;
    int core = tell_core(prog->routes->to[plan->steps[prog->listed.at].peer]);
    struct coll__signature sig;

    for (int i = prog->listed.at; i < plan->n_steps && core; i++) {
        int peer = plan->steps[i].peer;
        struct coll__tp *tp;

        if (!coll__step_is_recv(plan->steps[i].kind))
            continue;
        tp = prog->routes->to[peer];
        if (may_share(tp, peer, core) &&
            !tp->ops->peek(tp, peer, prog->xfers[i].channel, &sig))
            return 0;
    }
    return core != 0;
}

static int look(struct coll__prog *prog, int *moved)
{
    const struct coll__routes *routes = prog->routes;
    int before = prog->listed.at,
        rc = go_on(prog, routes->is_shared ? 0 : routes->looks);

    if (rc == COLL_IN_PROGRESS && routes->is_shared && prog->listed.hears_all &&
        waits_for_others(prog))
        rc = go_on(prog, routes->looks);
    *moved |= prog->listed.at > before;
    return rc;
}

/* The next look() finds the messages that have arrived meanwhile. */
static int advance(struct coll__prog *prog, int *moved)
{
    (void)prog;
    (void)moved;
    return COLL_IN_PROGRESS;
}

static int make(struct coll__prog *prog)
{
    prog->listed.hears_all = hears_all(prog);
    return COLL_OK;
}

static void nothing(struct coll__prog *prog)
{
    (void)prog;
}

static size_t bytes(const struct coll__prog *prog)
{
    (void)prog;
    return 0;
}

const struct coll__engine coll__engine_listed = {
    .serves = serves,
    .make = make,
    .destroy = nothing,
    .bytes = bytes,
    .on_device = coll__no_on_device,
    .start = start,
    .look = look,
    .advance = advance,
};
