/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.h - sizes and counts of the library that suit most machines, in one table.
 *
 * A tuning file (lib/price/tune.h) can replace them; doc/tuning.md explains each to users.
 * They hold for the whole process and are read when something is set up, never on a hot
 * path.  Each was a variable of the environment once: shm_slot was COLL_SHM_SLOT.
 */
#ifndef COLL_LIB_UTIL_LIMIT_H
#define COLL_LIB_UTIL_LIMIT_H

#include <stddef.h>

#define COLL__KIB ((size_t)1 << 10)
#define COLL__MIB ((size_t)1 << 20)
#define COLL__TIB ((size_t)1 << 40)

/* X(ID, name, default, the most that a tuning file may say) */
#define COLL_LIMIT_MAP(X)                                                      \
    /* a slot of the fifo between two ranks; 0: chosen by their number */      \
    X(SHM_SLOT, "shm_slot", 0, 64 * COLL__KIB)                                 \
    /* a cell for longer messages */                                           \
    X(SHM_CELL, "shm_cell", 128 * COLL__KIB, 16 * COLL__MIB)                   \
    /* cells of each rank; 0: chosen by the number of ranks */                 \
    X(SHM_CELLS, "shm_cells", 0, 32767)                                        \
    /* from this length on a message is read from the sender's memory */       \
    X(CMA_MIN, "cma_min", 64 * COLL__KIB, COLL__TIB)                           \
    /* up to this many bytes that an operation reads and writes on a host */   \
    X(CMA_MAX, "cma_max", 64 * COLL__MIB, COLL__TIB)                           \
    /* from this length on a message in a region is read in place */           \
    X(MEM_MIN, "mem_min", 16 * COLL__KIB, COLL__TIB)                           \
    /* from this many bytes on results are written past the caches */          \
    X(STREAM_MIN, "stream_min", 48 * COLL__MIB, COLL__TIB)                     \
    /* up to this many bytes a collective overtakes larger ones */             \
    X(OVERTAKE, "overtake", 64 * COLL__KIB, COLL__TIB)                         \
    /* up to this many ranks UCX connects all of them when it is opened */     \
    X(UCX_MESH, "ucx_mesh", 64, 1 << 20)                                       \
    /* TCP connections for a long message; 0: one for each equal interface */  \
    X(TCP_RAILS, "tcp_rails", 0, 8)                                            \
    /* a slot between two GPUs, a multiple of 64; 0: chosen by their number */ \
    X(CUDA_SLOT, "cuda_slot", 0, 16 * COLL__MIB)                               \
    /* slots from one rank's GPU to another's, 1 at least */                   \
    X(CUDA_SLOTS, "cuda_slots", 2, 64)                                         \
    /* idle allocations of each other rank's GPU that stay mapped */           \
    X(CUDA_MAPS, "cuda_maps", 8, 1024)                                         \
    /* up to this many bytes of all ranks an operation is one kernel */        \
    X(CUDA_KERNEL_MAX, "cuda_kernel_max", 256 * COLL__KIB, COLL__TIB)          \
    /* blocks of that kernel; 0: chosen by its longest step */                 \
    X(CUDA_KERNEL_BLOCKS, "cuda_kernel_blocks", 0, 1024)

enum coll__limit {
#define X(id, name, standard, most) LIMIT_##id,
    COLL_LIMIT_MAP(X)
#undef X
        N_LIMITS
};

/* What a tuning file says; COLL__NOT_SAID: nothing. */
struct coll__limits {
    size_t values[N_LIMITS];
};

#define COLL__NOT_SAID ((size_t)-1)

/* Return the limit that is in force. */
size_t coll__limit(enum coll__limit id);

/* Return the limit's name in a tuning file, the most that the file may say, and the variable
 * that it was once. */
const char *coll__limit_name(enum coll__limit id);
size_t coll__limit_most(enum coll__limit id);
const char *coll__limit_variable(enum coll__limit id);

/* Put a tuning file's limits in force, in place of the file's before; NULL: the defaults.
 *
 * Threads:   any, at any time.
 */
void coll__limits_use(const struct coll__limits *limits);

/* Replace a default, beyond what a tuning file may say: for tests. */
void coll__limit_assume(enum coll__limit id, size_t value);

#endif
