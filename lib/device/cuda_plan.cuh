/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan.cuh - execute a plan's steps as a block of a grid; cuda_plan.h describes the
 * steps.
 *
 * All threads of a block call these functions together.  Only thread 0 polls and writes
 * words; the others learn its result at the block's barrier.
 */
#ifndef COLL_LIB_DEVICE_CUDA_PLAN_CUH
#define COLL_LIB_DEVICE_CUDA_PLAN_CUH

#include "lib/device/cuda_plan.h"
#include "lib/device/cuda_walk.cuh"

namespace coll
{
/* ---- words that others see --------------------------------------------------- */

#ifdef __CUDACC__ /* else they are cuda_shim.h's */
DEVICE uint32_t load_acquire(const uint32_t *at)
{
    uint32_t x;

    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
    return x;
}

DEVICE uint32_t load_relaxed(const uint32_t *at)
{
    uint32_t x;

    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
    return x;
}

DEVICE void store_relaxed(uint32_t *at, uint32_t x)
{
    asm volatile("st.relaxed.sys.u32 [%0], %1;" : : "l"(at), "r"(x) : "memory");
}

DEVICE void store_release(uint32_t *at, uint32_t x)
{
    asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(at), "r"(x) : "memory");
}

/* Turn a device address into a pointer; the host build of tests has another version. */
template <typename T> DEVICE T *reach(uint64_t at, uint64_t)
{
    return (T *)at;
}

/* Between two looks at a word. */
DEVICE void rest() {}
#endif

/* ---- blocks ------------------------------------------------------------------ */

/* The memory that the blocks of a grid share. */
struct crew {
    uint32_t *state; /* the barrier's word, then one word a step */
    const uint32_t *stop;
};

/* Polls of a word between two polls of the stop word.  The stop word is in memory of the
 * host, and a poll of it takes some microseconds instead of one. */
#define LOOKS 64

/* Wait until those bits of *word equal those of `is`.  Returns true; false: stop. */
DEVICE bool becomes(const uint32_t *word, uint32_t is, uint32_t bits,
                    const uint32_t *stop)
{
    for (unsigned n = 1; (load_acquire(word) ^ is) & bits; n++) {
        if (n % LOOKS == 0 && stop && load_relaxed(stop))
            return false;
        rest();
    }
    return true;
}

/* The barrier of a block's threads.  Says whether one of them has to stop. */
DEVICE bool meet(bool must_stop) { return __syncthreads_or(must_stop); }

#define MEETING (1u << 31) /* this bit changes when all have come */

/* The barrier of all blocks of the grid; false: stop.  Each block adds 1, and block 0
 * adds the rest to 2^31, so that the last block to arrive flips the uppermost bit.  So
 * the word needs no reset between runs. */
DEVICE bool meet_all(const crew &c)
{
    bool must_stop = false;

    if (gridDim.x == 1)
        return !meet(false);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t old;

        __threadfence();
        old = atomicAdd(c.state,
                        blockIdx.x ? 1 : MEETING - (uint32_t)(gridDim.x - 1));
        must_stop = !becomes(c.state, ~old, MEETING, c.stop);
    }
    return !meet(must_stop);
}

/* All bits: the words of a slot are compared as a whole. */
#define WHOLE UINT32_MAX

DEVICE bool await(const crew &c, uint64_t word, uint32_t is)
{
    return becomes(reach<uint32_t>(word, 4), is, WHOLE, c.stop);
}

/* Wait for the received message and for a free slot to send; false: stop. */
DEVICE bool await_slots(const crew &c, const coll__cuda_step &step)
{
    bool must_stop = false;

    if (threadIdx.x == 0) {
        if (step.flags & COLL__CUDA_RECEIVES)
            must_stop = !await(c, step.recv.own, 1);
        if (step.flags & (COLL__CUDA_SENDS | COLL__CUDA_SETTLES) && !must_stop)
            must_stop = !await(c, step.send.own, 0);
    }
    return !meet(must_stop);
}

/* Is this the last block to finish step i?  Then the step's word is 0 again. */
DEVICE bool is_last(const crew &c, uint32_t i)
{
    if (gridDim.x == 1)
        return true;
    __threadfence_system();
    if (atomicInc(c.state + 1 + i, gridDim.x - 1) != gridDim.x - 1)
        return false;
    __threadfence_system();
    return true;
}

/* Write this end's word first: the other end may overwrite it once its word is set. */
DEVICE void write_words(const coll__cuda_words &words, uint32_t is)
{
    store_relaxed(reach<uint32_t>(words.own, 4), is);
    store_release(reach<uint32_t>(words.theirs, 4), is);
}

/* If the whole grid has finished the step, tell the peers. */
DEVICE void tell(const crew &c, const coll__cuda_step &step, uint32_t i)
{
    __syncthreads();
    if (threadIdx.x || !is_last(c, i))
        return;
    if (step.flags & COLL__CUDA_SENDS)
        write_words(step.send, 1);
    if (step.flags & COLL__CUDA_RECEIVES)
        write_words(step.recv, 0);
}

/* ---- steps ------------------------------------------------------------------- */

/* One function for each kind of step, called by its address, so that the kernel holds one
 * copy of each.  (If they are called by name, ptxas inlines all, which takes minutes.) */
struct operands {
    void *dst, *next;
    const void *src;
    uint64_t with, number, len;
};
typedef void doing(struct team team, struct operands o);

static __device__ void do_copy(struct team team, struct operands o)
{
    change(same(), team, o.dst, o.next, o.src, o.len);
}

template <class Op>
static __device__ void do_reduce(struct team team, struct operands o)
{
    reduce<Op>(team, o.dst, o.next, (const void *)o.with, o.src, o.len);
}

template <typename T>
static __device__ void do_multiply(struct team team, struct operands o)
{
    change(multiply<T>(o.number), team, o.dst, NULL, o.src, o.len);
}

template <typename T>
static __device__ void do_scale(struct team team, struct operands o)
{
    divide<T>(team, o.dst, o.src, o.len, (int)o.number, o.with);
}

#define DO_REDUCE(op, kind) do_reduce<op<kind>>,
#define DO_MULTIPLY(op, kind) do_multiply<kind>,
#define DO_SCALE(op, kind) do_scale<kind>,

/* By enum coll__cuda_doing. */
static __device__ doing *const doings[] = {
    do_copy,
    COLL__CUDA_REDUCE_MAP(DO_REDUCE) COLL__CUDA_MULTIPLY_MAP(DO_MULTIPLY)
        COLL__CUDA_SCALE_MAP(DO_SCALE)};

/* The bases of operands: IN, OUT, TMP. */
struct bases {
    uint64_t of[3];
};

/* Select by comparisons: an index would put the bases into memory. */
DEVICE uint64_t address(const bases &b, unsigned in, uint64_t off)
{
    uint64_t base = in == COLL__CUDA_IN    ? b.of[0]
                    : in == COLL__CUDA_OUT ? b.of[1]
                    : in == COLL__CUDA_TMP ? b.of[2]
                                           : 0;

    return base + off;
}

DEVICE void act(const coll__cuda_step &step, const bases &b)
{
    struct team team = {(size_t)blockIdx.x * blockDim.x + threadIdx.x,
                        (size_t)gridDim.x * blockDim.x};
    struct operands o = {
        reach<void>(address(b, step.dst_in, step.dst), step.len), NULL,
        reach<void>(address(b, step.src_in, step.src), step.len), step.with,
        step.number, step.len};

    if (step.with_in != COLL__CUDA_NONE)
        o.with = (uint64_t)reach<void>(address(b, step.with_in, step.with),
                                       step.len);
    if (step.next_in != COLL__CUDA_NONE)
        o.next = reach<void>(address(b, step.next_in, step.next), step.len);
    doings[step.what](team, o);
}

/* Execute the whole plan, as one block of the grid. */
DEVICE void run_plan(const crew &c, const coll__cuda_step *steps, uint32_t n,
                     const bases &b)
{
    for (uint32_t i = 0; i < n; i++) {
        const coll__cuda_step step = steps[i];

        if (step.flags & COLL__CUDA_BEHIND && !meet_all(c))
            return;
        if (step.flags & (COLL__CUDA_SENDS | COLL__CUDA_RECEIVES |
                          COLL__CUDA_SETTLES) &&
            !await_slots(c, step))
            return;
        if (step.len)
            act(step, b);
        if (step.flags & (COLL__CUDA_SENDS | COLL__CUDA_RECEIVES))
            tell(c, step, i);
    }
}
} // namespace coll

#endif
