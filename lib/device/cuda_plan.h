/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan.h - a whole plan as one kernel, coll_plan, which reads its steps as data.
 *
 *   host, once         steps of a plan ──▶ struct coll__cuda_step [n], in the
 *                      GPU's memory with some words of state behind them
 *   host, each call    one launch: IN, OUT and TMP of that call
 *   GPU                every block executes all steps, in their order, and does its
 *                      share of each; the slots of messages are in the receiver's
 *                      memory:
 *
 *      sender                                    receiver
 *      waits until its own word is 0 (free)      waits until its own word is 1
 *      writes the slot                           reads the slot, or reduces from it
 *      its own word = 1, the receiver's = 1      its own word = 0, the sender's = 0
 *
 * A fused receive-send does both: it forwards a message to the next rank as it receives
 * it, and stores it in dst too if it is needed there.  It waits for the words of both
 * slots and writes them.
 *
 * A direct read moves no data through a slot.  The words of a slot tell the receiver that
 * the sender's buffer is ready; the receiver reads it in place.  At its end the sender
 * waits until all of its buffers have been read.
 *
 * Each slot has a word in the memory of each end.  A waiting rank reads its own GPU's
 * memory, and only its peer writes there from outside.  (An H100 took 2.1 us for a round
 * trip of such flags, and 6.0 us through memory of the host; tests/gpu/reports.)  After
 * a run all words have their first values again, so a captured launch may run any
 * number of times.
 *
 * Order: a block's stores come before the words that it writes, and its loads come after
 * the words that it reads.  The PTX memory model guarantees this between a release and
 * an acquire whose scopes include each other.  The scope here is .sys, since the two
 * ends may be two GPUs; bar.sync joins the threads of a block (PTX ISA, "Memory
 * Consistency Model", "Causality order").
 *
 * Blocks wait for each other if a step needs the work of the whole grid, so all blocks
 * must be on the GPU at once.  This holds because they are few: the blocks of all ranks
 * that share the GPU fit on it.  (The cooperative launch of the CUDA Programming Guide,
 * "Grid Synchronization", would guarantee it, but not every driver can capture such a
 * launch.)  No block relies on another block to have started first.
 *
 * A waiting block polls the stop word, in memory of the host.  If it is not 0, the
 * communicator has failed, and all blocks return.
 */
#ifndef COLL_LIB_DEVICE_CUDA_PLAN_H
#define COLL_LIB_DEVICE_CUDA_PLAN_H

#include "lib/device/cuda_entries.h"

#include <stdint.h>

/* Kinds of steps, named after the kernels that do one step. */
#define COLL__CUDA_DOING_MAP(X)                                                \
    COLL__CUDA_REDUCE_MAP(X) COLL__CUDA_MULTIPLY_MAP(X) COLL__CUDA_SCALE_MAP(X)

enum coll__cuda_doing {
    COLL__CUDA_DO_COPY,
#define X(op, kind) COLL__CUDA_DO_##op##_##kind,
    COLL__CUDA_DOING_MAP(X)
#undef X
        COLL__CUDA_N_DOINGS
};

enum coll__cuda_step_flag {
    COLL__CUDA_BEHIND = 1,   /* the step waits for all earlier steps */
    COLL__CUDA_SENDS = 2,    /* dst or next is a slot of another rank */
    COLL__CUDA_RECEIVES = 4, /* src is a slot of this rank */
    COLL__CUDA_SETTLES = 8,  /* the step only waits until the slot with the
                              * words `send` is free */
};

/* The base of an operand's offset. */
enum coll__cuda_base {
    COLL__CUDA_IN,
    COLL__CUDA_OUT,
    COLL__CUDA_TMP,
    COLL__CUDA_HERE, /* the offset is an address */
    COLL__CUDA_NONE  /* there is no such operand */
};

/* Words of a message's slot. */
struct coll__cuda_words {
    uint64_t own, theirs;
};

/* dst = what(with, src), what(src) or src, over len bytes of whole elements.  A reduce or
 * copy may also store next = dst. */
struct coll__cuda_step {
    uint8_t what, flags;
    uint8_t dst_in, src_in, with_in, next_in;
    uint8_t none[2];
    uint64_t dst, src, len;
    uint64_t with;   /* reduce: the left operand; scale: the magic */
    uint64_t
        number; /* multiply: the factor's bits; scale: the number of ranks */
    uint64_t next;
    struct coll__cuda_words recv, send; /* valid if `flags` say so */
};

/* Words of state behind the steps, 0 before the first run: one for the barrier of all
 * blocks, and one for each step. */
#define COLL__CUDA_STATE_WORDS(n_steps) (1 + (uint64_t)(n_steps))

/* coll_plan's parameters, in order:
 *   const struct coll__cuda_step *steps, uint32_t n_steps, uint32_t *state,
 *   const uint32_t *stop (or NULL), void *in, void *out, void *tmp
 */
#define COLL__CUDA_PLAN "coll_plan"

#endif
