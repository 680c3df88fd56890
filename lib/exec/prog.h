/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.h - what a program is, for the files that run it.
 *
 * Two engines run programs.  exec.c keeps lanes and a queue of what is ready:
 * everything that can go on does.  listed.c goes through the steps as they are
 * listed and stops where a message has not come: the least work there is, for
 * small plans whose messages need no flow control.
 */
#ifndef COLL_LIB_EXEC_PROG_H
#define COLL_LIB_EXEC_PROG_H

#include "lib/exec/exec.h"

struct lane {
    struct coll__tp *tp;
    int peer, is_recv;
    int *steps; /* [n_steps], in order; within prog->lane_steps */
    int n_steps, n_issued, n_done;
};

struct coll__prog {
    struct coll__plan plan;
    int nranks;
    size_t size; /* bytes of an element */
    enum coll_type type;
    struct coll__op op;
    const struct coll__device *device;
    coll__reduce_fn *reduce; /* NULL for the caller's function */
    coll__scale_fn *scale;
    unsigned char *scaled; /* premul: IN times the scalar, or NULL */
    size_t scaled_len;
    unsigned char *scratch; /* its own, of TMP and what is scaled; or NULL */
    const struct coll__routes *routes;
    int *onward; /* [n_steps]: the group of sends that a result is for, or 0 */
    int is_p2p;
    int is_listed; /* listed.c runs it: then all from `left` on is not there */

    unsigned char *base[N_BUFS]; /* of this run */
    void *stream;
    struct coll__head head;
    struct coll__xfer *xfers; /* [n_steps] */
    const struct coll__xfer *fault;
    int at; /* listed.c: the step that is next */

    int *left;    /* [n_steps]: edges still to come */
    int *lane_of; /* [n_steps]: -1 for a local step */
    struct lane *lanes;
    int n_lanes, *lane_steps;
    /* Local steps, in order of readiness: those that are started, and of them
     * those that have ended. */
    int *ready, n_ready, n_taken, n_ended;
    int n_done;
    /* [n_steps + 1] of a device with queues, the last for premul; else NULL. */
    struct coll__work *works;
    int is_opening; /* premul runs, and nothing else yet */
};

static inline void *prog_at(const struct coll__prog *prog,
                            const struct coll__span *span)
{
    return span->len ? prog->base[span->buf] + span->off : NULL;
}

/* Fill in what changes from run to run of a message's transfer. */
void coll__prog_address(struct coll__prog *prog, int i);

/* Do a step that is no message. */
void coll__prog_local(struct coll__prog *prog, int i);

/* ---- listed.c -------------------------------------------------------------- */

/* Can a plan be run as listed, over these routes? */
int coll__listed_serves(const struct coll__plan *plan,
                        const struct coll__routes *routes);

/* Go on to where a message is waited for; what fails does so again then. */
void coll__listed_start(struct coll__prog *prog);

/* Go on; COLL_OK at the end, COLL_IN_PROGRESS, or the status of what failed.
 * *moved is set when it moved. */
int coll__listed_run(struct coll__prog *prog, int *moved);

#endif
