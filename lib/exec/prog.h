/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.h - what a program is, and the engines that run it.
 *
 * listed.c goes through the steps as they are listed and stops where a message has
 * not come: the least work there is, for small plans whose messages need no flow
 * control.  lanes.c keeps lanes and a queue of what is ready: everything that can
 * go on does.  stream_engine.c puts all steps into a stream of a device, one by one or
 * as one kernel (kernel_program.c): it runs all that is for a device with streams.
 */
#ifndef COLL_LIB_EXEC_PROG_H
#define COLL_LIB_EXEC_PROG_H

#include "lib/exec/exec.h"

struct coll__prog;

struct coll__engine {
    /* Can it run the program, whose plan, routes and device are there? */
    int (*serves)(const struct coll__prog *prog);

    /* Have what runs need, COLL_OK or COLL_ERR_NOMEM; let go of it, also after a
     * failure; and how many bytes that is. */
    int (*make)(struct coll__prog *prog);
    void (*destroy)(struct coll__prog *prog);
    size_t (*bytes)(const struct coll__prog *prog);

    /* And of the device's memory, but for scratch. */
    size_t (*on_device)(const struct coll__prog *prog);

    /* Start a run, whose buffers are in prog->base; what fails does so later.
     * The others as in exec.h. */
    void (*start)(struct coll__prog *prog);
    int (*look)(struct coll__prog *prog, int *moved);
    int (*advance)(struct coll__prog *prog, int *moved);
    int (*reached)(struct coll__prog *prog);
    void (*abandon)(struct coll__prog *prog);
};

/* Of engines whose runs have ended when they say so. */
int coll__no_reached(struct coll__prog *prog);

/* Of those that hold nothing on a device. */
size_t coll__no_on_device(const struct coll__prog *prog);

extern const struct coll__engine coll__engine_queued, coll__engine_listed,
    coll__engine_lanes;

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
    int *groups; /* [n_steps]: of sends of the same bytes, which a send is of or
                  * a result goes out in; 0: none */
    int is_past; /* the operation's bytes exceed the caches */
    int is_p2p;
    int by_kernel; /* stream_engine.c: all steps as one kernel */
    int is_kept;   /* see coll__prog_keep() */
    const struct coll__engine *engine;
    struct coll__xfer *xfers; /* [n_steps] */

    const void *in; /* of this run, and below */
    unsigned char *base[N_BUFS];
    void *stream;
    struct coll__head head;
    const struct coll__xfer *fault;

    int at;        /* listed.c: the step that is next */
    int hears_all; /* listed.c: each other rank sends it something, and says where
                    * it waits */
    struct coll__lanes *lanes; /* lanes.c's, or NULL */
    struct coll__queued *queued; /* stream_engine.c's, or NULL */
};

static inline void *prog_at(const struct coll__prog *prog,
                            const struct coll__span *span)
{
    return span->len ? prog->base[span->buf] + span->off : NULL;
}

/* What a step does, of struct coll__work, but for what a message brings. */
static inline int prog_work(const struct coll__step *step)
{
    switch (step->kind) {
    case STEP_REDUCE:
    case STEP_RECV_REDUCE:
        return WORK_REDUCE;
    case STEP_SCALE:
        return WORK_SCALE;
    default:
        return WORK_COPY;
    }
}

/* kernel_program.c: a queued plan as steps for one kernel.  *steps is the caller's, to end by
 * free(); COLL_ERR_NOMEM is logged. */
int coll__prog_planned(const struct coll__prog *prog,
                       struct coll__planned **steps, int *n);

/* fused.c: is step i of a queued plan a receive that is one with the next step, its
 * result passed on, and kept here as well, or not? */
enum coll__joined { JOINED_NOT, JOINED_KEPT, JOINED_GONE };
enum coll__joined coll__prog_joined(const struct coll__prog *prog, int i);

/* stream_engine.c: does message i lie where its sender has it, and in no slot? */
int coll__prog_lies_there(const struct coll__prog *prog, int i);

/* stream_engine.c's. */
struct coll__queued {
    int *number; /* [n_steps]: of a message, among those on its lane */
    unsigned char *joined; /* [n_steps]: enum coll__joined */
    void *mark;  /* behind the last run; NULL before the first one */
    void *plan;  /* by_kernel: on the device, from the first run on */
    int status;  /* of the last start */

    /* [n_steps], of messages that lie in no slot: where, len 0 of the others; NULL:
     * there are none.  Of its sends those that are the last ones in their slots. */
    struct coll__span *lying;
    int *last, n_last;
    const struct coll__stream_area *area[N_BUFS]; /* of the runs to come */
    size_t off[N_BUFS];
};

/* Fill in what changes from run to run of a message's transfer. */
void coll__prog_address(struct coll__prog *prog, int i);

/* Do a step that is no message. */
void coll__prog_local(struct coll__prog *prog, int i);

#endif
