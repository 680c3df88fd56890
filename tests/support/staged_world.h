/* SPDX-License-Identifier: BSD-3-Clause */
/* staged_world.h - ranks with GPU buffers, over the fake CUDA driver: a call twice,
 * on buffers of the host and of the device. */
#ifndef COLL_TESTS_STAGED_WORLD_H
#define COLL_TESTS_STAGED_WORLD_H

#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"

struct staged_rank {
    struct world_rank *me;
    struct coll_comm *comm;
    CUstream stream;
};

/* Open the driver, take the rank's device, make a communicator and a stream; end
 * them.  0, or not. */
int staged_join(struct staged_rank *r, struct world_rank *me);
int staged_leave(struct staged_rank *r);

/* Run fn on each of `size` ranks, processes or threads, none of whose calls may wait
 * longer than 30 s.  Return how many ranks failed. */
int staged_fork(int size, world_fn *fn, void *arg);
int staged_threads(int size, world_fn *fn, void *arg);

/* Keep what the log says of GPU buffers, with COLL_LOG=info: the line said last. */
void staged_listen(void);
const char *staged_said(void);

/* A call of `count` elements, or around that many of each rank. */
struct staged_call {
    struct coll_args host,
        device; /* the caller's: host's collective, type, op, root */
    size_t count;
    int in_place;
    size_t in_len, out_len; /* and below: staged_fill()'s; bytes */
    size_t *numbers;
};

/* Make the buffers of both, the same bytes in them; 0.  And free them, when all
 * ranks came there: to free device memory waits for all streams of the context,
 * which may be another rank's of this process. */
int staged_fill(const struct staged_rank *r, struct staged_call *call);
void staged_free(const struct staged_rank *r, struct staged_call *call);

/* Other bytes for both, into the buffer that is read; no stream is at it. */
void staged_refill(struct staged_call *call, unsigned seed);

/* Call it; its status. */
int staged_do(const struct coll_args *args, struct coll_comm *comm);

/* Have both the same bytes, in all of their buffers? */
int staged_same(const struct staged_call *call);

/* Memory of the current device with these bytes; and what it holds, to be freed. */
void *staged_put(const void *bytes, size_t len);
void *staged_get(const void *at, size_t len);

/* Memory of the current device with `count` numbers: first, first + 1, ...; and whether
 * it holds first, first + step, ... */
int32_t *staged_numbers(int first, size_t count);
int staged_holds(const int32_t *at, int first, int step, size_t count);

/* Launch a captured graph `n` times in the rank's stream, and wait for the end. */
void staged_launch(const struct staged_rank *r, CUgraph graph, int n);

#endif
