/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_queue.h - events in order of time; those of one time in the order in
 * which they were put, so that equal simulations give equal results.
 */
#ifndef COLL_TOOLS_SIM_SIM_QUEUE_H
#define COLL_TOOLS_SIM_SIM_QUEUE_H

#include <stdint.h>

struct coll__sim_event {
    double time; /* s */
    uint64_t seq;
    int kind, at; /* the caller's */
};

/* All zero at first. */
struct coll__sim_queue {
    struct coll__sim_event *events;
    int n, cap;
    uint64_t seq;
};

/* COLL_OK, or COLL_ERR_NOMEM (not logged).  O(log n). */
int coll__sim_put(struct coll__sim_queue *queue, double time, int kind, int at);

/* Take the first event; 0 when there is none.  O(log n). */
int coll__sim_take(struct coll__sim_queue *queue,
                   struct coll__sim_event *event);

void coll__sim_queue_fini(struct coll__sim_queue *queue);

#endif
