/* SPDX-License-Identifier: BSD-3-Clause */
/* device_world.h - ranks with GPU buffers, over the fake CUDA driver: a call twice,
 * on buffers of the host and of the device. */
#ifndef COLL_TESTS_DEVICE_WORLD_H
#define COLL_TESTS_DEVICE_WORLD_H

#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"

struct device_rank {
    struct world_rank *me;
    struct coll_comm *comm;
    CUstream stream;
};

/* Open the driver, take the rank's device, make a communicator and a stream; end
 * them.  0, or not. */
int device_join(struct device_rank *r, struct world_rank *me);
int device_leave(struct device_rank *r);

/* Run fn on each of `size` ranks, processes or threads, none of whose calls may wait
 * longer than 30 s.  Return how many ranks failed. */
int device_fork(int size, world_fn *fn, void *arg);
int device_threads(int size, world_fn *fn, void *arg);

/* Keep what the log says of GPU buffers, with COLL_LOG=info: the line said last. */
void device_listen(void);
const char *device_said(void);

/* A call of `count` elements, or around that many of each rank. */
struct device_call {
    struct coll_args host,
        device; /* the caller's: host's collective, type, op, root */
    size_t count;
    int in_place;
    size_t in_len, out_len; /* and below: device_fill()'s; bytes */
    size_t *numbers;
};

/* Make the buffers of both, the same bytes in them; 0.  And free them, when all
 * ranks came there: to free device memory waits for all streams of the context,
 * which may be another rank's of this process. */
int device_fill(const struct device_rank *r, struct device_call *call);
/* Take another operation if it is not for the call's type. */
void device_fit_op(struct coll_args *args);
void device_free(const struct device_rank *r, struct device_call *call);

/* Other bytes for both, into the buffer that is read; no stream is at it. */
void device_refill(struct device_call *call, unsigned seed);

/* Call it; its status. */
int device_do(const struct coll_args *args, struct coll_comm *comm);

/* Have both the same bytes, in all of their buffers? */
int device_same(const struct device_call *call);

/* Memory of the current device with these bytes; and what it holds, to be freed. */
void *device_put(const void *bytes, size_t len);
void *device_get(const void *at, size_t len);

/* Memory of the current device with `count` numbers: first, first + 1, ...; and whether
 * it holds first, first + step, ... */
int32_t *device_numbers(int first, size_t count);
int device_holds(const int32_t *at, int first, int step, size_t count);

/* Launch a captured graph `n` times in the rank's stream, and wait for the end. */
void device_launch(const struct device_rank *r, CUgraph graph, int n);

#endif
