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
    /* [size]: each rank's host.  GPUs of different hosts do not reach each other, so the
     * ranks are joined by a proxy over shm.  NULL: all are on one host, without a proxy. */
    const int *hosts;
};

/* All operations of the scenes to come are one kernel of so many blocks; 0: none is. */
extern int stream_kernel_blocks;

struct stream_rank {
    const struct world_rank *me;
    const struct stream_scene *scene;
    struct coll__stream_tp *tp;
    CUcontext ctx;
    CUstream s;
    int is_open; /* until stream_close() */
    struct stream_hosts
        *hosts; /* stream_hosts.c's: the way between hosts, or NULL */
};

/* Run the body on each rank, on device rank modulo n_devices; returns how many ranks
 * failed. */
int stream_run(const struct stream_scene *scene);

/* Close the rank's transport; a body that has failed does so itself. */
void stream_close(struct stream_rank *rank, int is_orderly);

/* Does the transport take that stream?  A status. */
int stream_takes(const struct stream_rank *rank, void *stream);

/* stream_hosts.c: put a proxy over rank->tp, and let a thread carry its messages until it
 * is stopped.  A status.  move: a round of what that thread did: whether anything moved,
 * or a status below 0. */
int stream_hosts_open(struct stream_rank *rank);
void stream_hosts_stop(const struct stream_rank *rank);
int stream_hosts_move(const struct stream_rank *rank);
void stream_hosts_close(struct stream_rank *rank, int is_orderly);

/* [size]: the ranks' places, as if all were on one host or on those of the scene. */
int stream_peers(const struct stream_rank *rank, int are_on_one,
                 struct coll__peer *peers);
int stream_gather(void *rank, const void *in, size_t len, void *out);

#endif
