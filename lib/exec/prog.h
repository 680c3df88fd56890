/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.h - the contents of a program, and the engines that run it.
 *
 * listed.c executes the steps in list order and stops at a message that has not come:
 * the least work, for small plans whose messages need no flow control.  lanes.c keeps
 * a lane for each peer and direction, and a queue of ready steps: every step that can
 * run does.  stream_engine.c puts all steps into a stream of a device, one by one or as
 * one kernel (kernel_program.c); it runs all programs of a device with streams.
 */
#ifndef COLL_LIB_EXEC_PROG_H
#define COLL_LIB_EXEC_PROG_H

#include "lib/exec/exec.h"

struct coll__prog;

struct coll__engine {
    /* Can it run the program?  The plan, routes and device are set. */
    int (*serves)(const struct coll__prog *prog);

    /* make() allocates what runs need: COLL_OK or COLL_ERR_NOMEM.  destroy() frees it,
     * also after a failed make().  bytes() returns its size on the host. */
    int (*make)(struct coll__prog *prog);
    void (*destroy)(struct coll__prog *prog);
    size_t (*bytes)(const struct coll__prog *prog);

    /* Return its bytes on the device, without scratch. */
    size_t (*on_device)(const struct coll__prog *prog);

    /* Start a run, whose buffers are in prog->run.base; look() and advance() return its
     * errors.  exec.h describes the other functions. */
    void (*start)(struct coll__prog *prog);
    int (*look)(struct coll__prog *prog, int *moved);
    int (*advance)(struct coll__prog *prog, int *moved);
};

/* on_device() of engines that hold no memory on a device. */
size_t coll__no_on_device(const struct coll__prog *prog);

extern const struct coll__engine coll__engine_stream, coll__engine_listed,
    coll__engine_lanes;

/* What changes from run to run. */
struct prog_run {
    const void *in;
    unsigned char *base[N_BUFS];
    void *stream;
    struct coll__signature sig;
    const struct coll__xfer *fault; /* the transfer that failed, or NULL */
};

struct prog_listed {
    int at;        /* the step that is next */
    int hears_all; /* every other rank sends to this rank, and publishes on which core
                    * it waits */
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
    unsigned char *scaled; /* IN times op.pre, or NULL */
    size_t scaled_len;
    unsigned char *scratch; /* its own, for TMP and the scaled input; or NULL */
    const struct coll__routes *routes;
    int *groups; /* [n_steps]: the group of sends of the same bytes that a send is in, or
                  * that sends a step's result; 0: none */
    int is_past; /* the operation's bytes exceed the caches */
    int is_p2p;
    int by_kernel; /* stream_engine.c: all steps as one kernel */
    const struct coll__engine *engine;
    struct coll__xfer *xfers; /* [n_steps] */

    struct prog_run run;
    struct prog_listed listed; /* listed.c's */
    struct coll__lanes *lanes; /* lanes.c's, or NULL */
    struct coll__stream_run *on_stream; /* stream_engine.c's, or NULL */
};

static inline void *prog_at(const struct coll__prog *prog,
                            const struct coll__span *span)
{
    return span->len ? prog->run.base[span->buf] + span->off : NULL;
}

/* Return the local work of a step, WORK_ of struct coll__work. */
static inline int prog_work(const struct coll__prog *prog,
                            const struct coll__step *step)
{
    switch (step->kind) {
    case STEP_REDUCE:
    case STEP_RECV_REDUCE:
        return WORK_REDUCE;
    case STEP_SCALE:
        return prog->op.post.is_set ? WORK_MULTIPLY : WORK_SCALE;
    default:
        return WORK_COPY;
    }
}

/* kernel_program.c: translate the plan into steps for one kernel.  The caller frees
 * *steps by free(); COLL_ERR_NOMEM is logged. */
int coll__prog_kernel_steps(const struct coll__prog *prog,
                            struct coll__kernel_step **steps, int *n);

/* fused.c: is receive i fused with the next step, which sends its result?  KEPT: the
 * result is also stored on this rank; GONE: it is not. */
enum coll__fused { FUSED_NOT, FUSED_KEPT, FUSED_GONE };
enum coll__fused coll__prog_fused(const struct coll__prog *prog, int i);

/* stream_engine.c: is message i a direct read, which uses no slot? */
int coll__prog_reads_direct(const struct coll__prog *prog, int i);

/* stream_engine.c's. */
struct coll__stream_run {
    int *number; /* [n_steps]: a message's number on its lane */
    unsigned char *fused; /* [n_steps]: enum coll__fused */
    void *plan;  /* by_kernel: the steps in the device's memory, from the first run on */
    int status;  /* of the last start */
    int has_works; /* the host does steps, with what is in the program */
    struct coll__carried
        *carried; /* from the first run on, if the transport plans */
    void (*forget)(
        struct coll__carried *run); /* the transport's, which may close first */

    /* direct[n_steps]: the sender's memory of each direct read, len 0 for other messages;
     * NULL if there are none.  last[n_last]: the last direct-read send of each slot. */
    struct coll__span *direct;
    int *last, n_last;
    const struct coll__registration *reg[N_BUFS]; /* of the runs to come */
    size_t off[N_BUFS];
    unsigned char is_host[N_BUFS],
        is_scaled_host; /* of the runs to come, too; the last: of what is scaled */
};

/* Fill in the part of a message's transfer that changes from run to run. */
void coll__prog_address(struct coll__prog *prog, int i);

/* Do a step that is no message. */
void coll__prog_local(struct coll__prog *prog, int i);

#endif
