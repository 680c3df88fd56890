/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_steps.h - all ranks' plans packed for a simulation: each step's work and the steps
 * that it waits for, some 40 bytes each; its data are not kept.
 *
 * A lane is one direction between two ranks: its i-th send goes with its i-th
 * receive.  Steps are numbered through all ranks, rank by rank.
 */
#ifndef COLL_TOOLS_SIM_SIM_STEPS_H
#define COLL_TOOLS_SIM_SIM_STEPS_H

#include <stddef.h>

struct coll__algo;
struct coll__problem;

enum coll__sim_kind {
    SIM_SEND,
    SIM_RECV,
    SIM_RECV_REDUCE,
    SIM_WORK, /* of the rank's processor, on len bytes */
    SIM_FREE  /* takes no time */
};

struct coll__sim_step {
    size_t len;         /* bytes */
    int lane;           /* a message's lane; a local step's rank */
    int next;           /* the next one on this side of the lane, -1 last */
    int waits;          /* steps that must finish before this one */
    int first_after;    /* the steps that wait for it, in after[] */
    unsigned char kind; /* enum coll__sim_kind */
    unsigned char is_here; /* a receive's message, before the receive began */
};

struct coll__sim_lane {
    int from, to;   /* ranks */
    int send, recv; /* the first step on each side, -1 none */
    int last_send, last_recv;
};

struct coll__sim_steps {
    int nranks, n_steps, n_lanes, n_after;
    int *first; /* [nranks + 1]: each rank's steps */
    struct coll__sim_step *steps; /* [n_steps + 1]: the last closes after[] */
    struct coll__sim_lane *lanes;
    int *after;
};

/* Build all ranks' plans, in chunks as pb->view says, and pack them.
 *
 * Shapes:    as coll__sim_run().
 * Ownership: the caller ends *all by coll__sim_steps_fini().
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INVALID (a send and its receive differ
 *            in number or length), logged.
 */
int coll__sim_steps_init(struct coll__sim_steps *all,
                         const struct coll__algo *algo,
                         const struct coll__problem *pb);
void coll__sim_steps_fini(struct coll__sim_steps *all);

#endif
