/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a rank of tests/gpu/ranks.c, for the parts of that. */
#ifndef TESTS_GPU_RANKS_H
#define TESTS_GPU_RANKS_H

#include "tests/gpu/gpu.h"
#include "tests/support/work.h"

#include <stdatomic.h>

enum { MOST_JOBS = 3 }; /* under way */

/* What all ranks of a run are told, and tell. */
struct run {
    int rounds;
    uint64_t seed;
    struct shared {
        atomic_int n_done; /* operations, of rank 0 */
        atomic_int n_left; /* microseconds, the most it took to be let go */
    } * shared;
};

/* Device memory, for one buffer after the other: to free it waits for all streams of
 * the context, those of other ranks too. */
struct room {
    CUdeviceptr at; /* 0: not there yet */
    CUdeviceptr found; /* as much, for what is there behind an operation */
    int is_taken;
};
#define ROOM ((size_t)32 << 20)

struct gpu_rank {
    struct world_rank *me;
    struct run *run;
    struct coll_comm *comm;
    struct room rooms[2 * MOST_JOBS];
    CUcontext context;
    CUstream streams[2];
    struct oracle_handles handles;
};

#define MUST(call) gpu_must(cu.call, #call)

/* Take a device, two streams and a communicator; give them back, when all ranks came
 * there.  0, or not. */
int gpu_rank_begin(struct gpu_rank *g, struct world_rank *me);
int gpu_rank_end(struct gpu_rank *g);

/* ranks_random.c: operations at random. */
int gpu_rank_random(struct world_rank *me);

/* ranks_register.c: operations on registered buffers. */
int gpu_rank_register(struct world_rank *me);

#endif
