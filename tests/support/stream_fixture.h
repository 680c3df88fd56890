/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.h - ranks with a stream each over the fake CUDA driver, joined by a
 * transport of transports/stream.h. */
#ifndef COLL_TESTS_STREAM_FIXTURE_H
#define COLL_TESTS_STREAM_FIXTURE_H

#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/world.h"
#include "transports/stream.h"

struct stream_scene {
    int size, n_devices, are_processes;
    unsigned seed;
    int n_slots;
    size_t slot;
    world_fn *body; /* arg is the struct stream_rank */
    void *arg;
    const char *fault; /* FAKE_CUDA_FAULT of rank 0, where they are processes */
};

/* All operations of the scenes to come are one kernel of so many blocks; 0: none is. */
extern int stream_kernel_blocks;

struct stream_rank {
    const struct world_rank *me;
    const struct stream_scene *scene;
    struct coll__stream_tp *tp;
    CUcontext ctx;
    CUstream s;
    int is_open; /* the body may close it, and say so */
};

/* Run the body on each rank, on device rank modulo n_devices; returns how many ranks
 * failed. */
int stream_run(const struct stream_scene *scene);

#endif
