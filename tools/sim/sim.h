/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.h - run all ranks' plans on a machine that need not exist: a
 * discrete-event simulation over a fabric's links.
 */
#ifndef COLL_TOOLS_SIM_SIM_H
#define COLL_TOOLS_SIM_SIM_H

#include "lib/algo/algo.h"
#include "tools/sim/fabric.h"

/* Make the view of nranks ranks on a fabric: groups, ring and prices.
 *
 * Ownership: the caller ends *view by coll__view_fini().
 * Errors:    COLL_ERR_INVALID (too few seats), COLL_ERR_NOMEM, logged.
 */
int coll__view_of_fabric(struct coll__view *view,
                         const struct coll__fabric *fabric, int nranks,
                         enum coll__placement placement, size_t chunk);

struct coll__sim_result {
    double seconds;    /* until the last rank is done */
    double bytes;      /* sent in all */
    long n_messages, n_steps; /* of all ranks */
    int busiest;       /* the link that was busy longest, -1 none */
    double busy;       /* for how long, s */
    int last_rank;     /* the one that ended last */
};

/* Simulate one operation that begins on all ranks at the same time; sim.c describes the
 * model.
 *
 * Shapes:    pb as any rank has it (its rank is ignored, in_place counts for
 *            all) with its view, of a collective whose counts are the same
 *            everywhere.
 * Result:    *result, the same each time.
 * Ownership: borrows all, keeps nothing.
 * Errors:    COLL_ERR_INVALID (plans that get stuck or do not fit together, too
 *            few seats), COLL_ERR_NOMEM, logged.
 * Threads:   any.
 * Cost:      O(s log s) for s steps of all ranks; some 50 bytes a step and 50 a
 *            pair of ranks that talk to each other.
 */
int coll__sim_run(const struct coll__algo *algo, const struct coll__problem *pb,
                  const struct coll__fabric *fabric,
                  enum coll__placement placement,
                  struct coll__sim_result *result);

#endif
