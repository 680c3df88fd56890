/* SPDX-License-Identifier: BSD-3-Clause */
/* simgrid_replay.h - the same steps on SimGrid, an independent simulator whose
 * flows share links like a fluid instead of queueing for them.
 */
#ifndef COLL_TESTS_SIMGRID_REPLAY_H
#define COLL_TESTS_SIMGRID_REPLAY_H

#ifdef __cplusplus
extern "C" {
#endif

#include "tools/sim/sim_steps.h"
#include "lib/plan/view.h"

struct replay_link {
    double latency, beta, share; /* s, s a byte, s a byte */
};

/* Steps, and the machine that they run on. */
struct replay {
    const struct coll__sim_steps *all;
    const struct replay_link *links; /* [n_links] */
    int n_links;
    const int *hops;  /* the links of the routes, one route after another */
    const int *first; /* [p * p + 1]: where that from rank i / p to i % p is */
    double overhead, gamma; /* s a message, s a byte */
    int in_order; /* each send of a rank waits for the end of the last one */
};

/* Return the time of the last step in s, or a negative number when the
 * simulation failed.  It runs in a process of its own: SimGrid has one engine
 * a process. */
double replay_seconds(const struct replay *replay);

#ifdef __cplusplus
}
#endif
#endif
