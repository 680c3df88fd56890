/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan.h - a whole plan as one kernel, coll_plan, which reads its steps as data.
 *
 *   host, once         steps of a plan ──▶ struct coll__cuda_step [n], in the
 *                      GPU's memory with some words of state behind them
 *   host, each call    one launch: IN, OUT and TMP of that call
 *   GPU                every block goes through all steps, in their order, and does
 *                      its share of each; a message's share lies in the receiver's
 *                      memory:
 *
 *      sender                                    receiver
 *      waits until its own word is 0 (free)      waits until its own word is 1
 *      writes the slot                           reads the slot, or reduces from it
 *      its own word = 1, the receiver's = 1      its own word = 0, the sender's = 0
 *
 * A step may do both: what comes is passed on as it is taken, to the next rank and, if
 * it is wanted here, to dst.  It waits for both slots' words and writes them.
 *
 * What ranks may read from each other's memory goes by no slot: its sender shows it, by
 * the words of a slot, and its receiver works on it where it lies.  At its end the sender
 * waits until all that it has shown is taken.
 *
 * Each slot has a word in the memory of either end: who waits reads its own GPU's
 * memory, and only its peer writes there from outside.  (An H100 took 2.1 us for
 * a round trip of flags so, and 6.0 us by memory of the host; tests/gpu/reports.)
 * When a run has ended all words are as they were, so a captured launch may run again
 * and again; nothing in it counts.
 *
 * Order: what a block has stored comes before the words it writes, and the words it
 * has read before what it loads.  The PTX memory model promises that between a
 * release and an acquire whose scopes include each other, here .sys, since the ends
 * may be two GPUs; bar.sync joins the threads of a block (PTX ISA, "Memory
 * Consistency Model", "Causality order").
 *
 * Blocks wait for each other where a step needs what others of the grid have done, so
 * all must be on the GPU at once.  Nothing promises that but their number: few enough
 * that those of all ranks that share the GPU fit (CUDA Programming Guide,
 * "Cooperative Groups, Grid Synchronization"; there by a launch that captures do not
 * take from every driver).  No block relies on another one to have started first.
 *
 * Whoever waits looks at the stop word, in memory of the host: once that is not 0, the
 * communicator has failed, and all blocks leave.
 */
#ifndef COLL_LIB_DEVICE_CUDA_PLAN_H
#define COLL_LIB_DEVICE_CUDA_PLAN_H

#include "lib/device/cuda_entries.h"

#include <stdint.h>

/* What a step does: by the names of the kernels for one step. */
#define COLL__CUDA_DOING_MAP(X)                                                \
    COLL__CUDA_REDUCE_MAP(X) COLL__CUDA_PREMUL_MAP(X) COLL__CUDA_SCALE_MAP(X)

enum coll__cuda_doing {
    COLL__CUDA_DO_COPY,
#define X(op, kind) COLL__CUDA_DO_##op##_##kind,
    COLL__CUDA_DOING_MAP(X)
#undef X
        COLL__CUDA_N_DOINGS
};

enum coll__cuda_step_flag {
    COLL__CUDA_BEHIND = 1,   /* all that the grid has done before */
    COLL__CUDA_SENDS = 2,    /* dst or next is a slot of another rank */
    COLL__CUDA_RECEIVES = 4, /* src is a slot of this rank */
    COLL__CUDA_SETTLES = 8,  /* it waits until the slot that it would send by, of
                              * which the words are here, is free */
};

/* What an operand's offset counts from. */
enum coll__cuda_base {
    COLL__CUDA_IN,
    COLL__CUDA_OUT,
    COLL__CUDA_TMP,
    COLL__CUDA_HERE, /* it is an address */
    COLL__CUDA_NONE  /* there is no such operand */
};

/* Words of a message's slot. */
struct coll__cuda_words {
    uint64_t own, theirs;
};

/* dst = what(with, src), what(src) or src, over len bytes of whole elements; and next
 * = dst, of a reduce and a copy. */
struct coll__cuda_step {
    uint8_t what, flags;
    uint8_t dst_in, src_in, with_in, next_in;
    uint8_t none[2];
    uint64_t dst, src, len;
    uint64_t with;   /* reduce: the left operand; scale: the magic */
    uint64_t number; /* premul: the factor's bits; scale: the number of ranks */
    uint64_t next;
    struct coll__cuda_words recv, send; /* as flags say */
};

/* Words of state behind the steps, 0 before the first run: where blocks meet, and one
 * for each step. */
#define COLL__CUDA_STATE_WORDS(n_steps) (1 + (uint64_t)(n_steps))

/* coll_plan's parameters, in order:
 *   const struct coll__cuda_step *steps, uint32_t n_steps, uint32_t *state,
 *   const uint32_t *stop (or NULL), void *in, void *out, void *tmp
 */
#define COLL__CUDA_PLAN "coll_plan"

#endif
