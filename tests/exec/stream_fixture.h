/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.h - operations in the streams of ranks (stream_fixture.h), with the
 * numbers of the oracle. */
#ifndef COLL_TESTS_EXEC_STREAM_FIXTURE_H
#define COLL_TESTS_EXEC_STREAM_FIXTURE_H

#include "tests/fake_cuda/counts.h"
#include "tests/support/oracle.h"
#include "tests/support/stream_fixture.h"
#include "lib/device/cuda.h"
#include "lib/exec/exec.h"
#include "lib/order/order.h"

enum { SLOT = 512, MOST = 1 << 16 /* bytes of a buffer */ };

/* Are the buffers of the scenes to come registered, to be read in place? */
extern int stream_registers;

/* A rank's memory on its device, and what it is compared with. */
struct stage {
    struct stream_rank *rank;
    CUdeviceptr in, out, scratch;
    char host_in[MOST], host_out[MOST];
    struct coll__routes routes;
    void (*ask)(struct fake_counts *);
};

/* What is done, on all ranks; and how this one has it. */
struct deed {
    struct oracle_op op;
    struct oracle_layout in, out;
    struct coll__problem pb;
};

/* Memory for a rank, to be given back when all have come there. */
struct stage *stream_stage_new(struct world_rank *me);
void stream_stage_free(struct world_rank *me, struct stage *s);

/* Fill in the problem as the rank has it, in place if asked for and possible. */
void stream_problem(struct deed *d, int rank, int in_place);

/* Draw a reduction that the device has a kernel for; of pairs, another type. */
void stream_draw_op(struct oracle_op *op, unsigned k);

/* Does the operation scale its input? */
int stream_scales(const struct deed *d);

/* The rank's input, and something else where its result will be. */
void stream_fill(const struct deed *d, struct stage *s);

/* A program of an algorithm, queued, with scratch; a status. */
int stream_make(const struct coll__algo *algo, const struct deed *d,
                struct stage *s, struct coll__prog **prog);

/* Put a run into the stream: its status.  reached: has the stream come to its end?
 * finish: wait for that; a status, that of the transport if it was released. */
int stream_start(struct coll__prog *prog, struct stage *s);
int stream_reached(struct coll__prog *prog, const struct stage *s);
int stream_finish(struct coll__prog *prog, const struct stage *s);

/* Capture a run into a graph, which the caller destroys. */
CUgraphExec stream_capture(struct coll__prog *prog, struct stage *s);

/* A rank has failed: its program is at an end, and so is its transport. */
void stream_fall_apart(struct world_rank *me, struct stage *s,
                       struct coll__prog *prog);

int stream_is_right(const struct deed *d, struct stage *s);

#endif
