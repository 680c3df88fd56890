/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_program.h - the programs of a communicator's calls for streams, by shape.
 *
 * A program is made at the first call of a shape, when an algorithm is chosen.  A later
 * call of the shape finds it by a hash, and nothing is priced.  As owner.
 */
#ifndef COLL_LIB_STREAM_STREAM_PROGRAM_H
#define COLL_LIB_STREAM_STREAM_PROGRAM_H

#include "lib/device/cuda_held.h"
#include "lib/plan/plan.h"
#include "lib/run/own_op.h"

struct coll__prog;
struct coll__stream_call;
struct coll_comm;
struct coll_mem_stats;

/* What of a shape is not in its problem and its operation. */
struct coll__stream_manner {
    const struct coll__algo *named; /* by the call; NULL: libcoll chooses */
    unsigned direct; /* buffers that are read in place, as bits 1 << BUF_... */
    uint64_t regs
        [N_BUFS]; /* for a kernel: their registrations' numbers, equal on all ranks */
};

struct coll__stream_program {
    struct coll__cuda_held held;       /* first; graphs hold runs of it */
    struct coll__stream_program *next; /* with equal last bits of the hash */
    uint64_t hash, used;               /* used: when, in calls */
    struct coll__problem pb;           /* its arrays are `numbers` */
    struct coll__own_op own;           /* its operation, in the caller's form */
    struct coll__stream_manner how;
    size_t *numbers;
    struct coll__prog *prog;
    uint32_t ticket; /* of its last run */
};

enum { PROGRAM_LISTS = 64 };

/* All 0 at first. */
struct coll__stream_program_list {
    struct coll__stream_program *lists[PROGRAM_LISTS];
    int n;
    uint64_t n_calls;
};

/* Find the program of a call, or choose an algorithm and make one; how->named is set
 * here.  The program is the list's, and stays at least until the next call; the caller
 * notes its runs in it.  A status, logged. */
int coll__stream_program_have(struct coll__stream_program_list *list,
                              struct coll_comm *comm,
                              const struct coll__stream_call *call,
                              struct coll__stream_manner *how,
                              struct coll__stream_program **out);

/* Add what they hold. */
void coll__stream_program_bytes(const struct coll__stream_program_list *list,
                                struct coll_mem_stats *stats);

void coll__stream_program_forget_all(struct coll__stream_program_list *list);

#endif
