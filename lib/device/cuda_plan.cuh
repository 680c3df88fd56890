/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan.cuh - going through a plan's steps as a block of a grid; cuda_plan.h says
 * what they are.
 *
 * All threads of a block come here together.  Thread 0 alone polls and writes words;
 * what it found the others learn where the block meets.
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

/* Where the memory of a device address is; here, there. */
template <typename T> DEVICE T *reach(uint64_t at, uint64_t)
{
    return (T *)at;
}

/* Between two looks at a word. */
DEVICE void rest() {}
#endif

/* ---- blocks ------------------------------------------------------------------ */

/* Of a grid, and of what its blocks share. */
struct crew {
    uint32_t *state; /* where blocks meet, then a word a step */
    const uint32_t *stop;
};

/* Looks at a word between two looks at the stop word, which is in memory of the host:
 * some microseconds against one. */
#define LOOKS 64

/* Until those bits of *word are as they are in `is`: true; or false: stop. */
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

/* All threads of the block, and whether one of them has to stop. */
DEVICE bool meet(bool must_stop) { return __syncthreads_or(must_stop); }

#define MEETING (1u << 31) /* this bit changes when all have come */

/* Wait for all blocks of the grid; false: stop.  The word needs no number of the run:
 * who comes first adds so much that the last one changes the uppermost bit. */
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

/* Those of a slot are 0, or this. */
#define WHOLE UINT32_MAX

DEVICE bool await(const crew &c, uint64_t word, uint32_t is)
{
    return becomes(reach<uint32_t>(word, 4), is, WHOLE, c.stop);
}

/* Wait for what comes to be there, and for what goes to have room; false: stop. */
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

/* Is this the last block that has done step i?  The step's word is 0 again then. */
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

/* One's own word first, since the other end may write it as soon as it is told. */
DEVICE void write_words(const coll__cuda_words &words, uint32_t is)
{
    store_relaxed(reach<uint32_t>(words.own, 4), is);
    store_release(reach<uint32_t>(words.theirs, 4), is);
}

/* The grid's part is done: tell the other ends. */
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

/* A function each, called by its address, so that the kernel holds one copy of each
 * (ptxas makes one body of all that is called by name, in minutes). */
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
static __device__ void do_premul(struct team team, struct operands o)
{
    change(premul<T>(o.number), team, o.dst, NULL, o.src, o.len);
}

template <typename T>
static __device__ void do_scale(struct team team, struct operands o)
{
    divide<T>(team, o.dst, o.src, o.len, (int)o.number, o.with);
}

#define DO_REDUCE(op, kind) do_reduce<op<kind>>,
#define DO_PREMUL(op, kind) do_premul<kind>,
#define DO_SCALE(op, kind) do_scale<kind>,

/* By enum coll__cuda_doing. */
static __device__ doing *const doings[] = {
    do_copy, COLL__CUDA_REDUCE_MAP(DO_REDUCE) COLL__CUDA_PREMUL_MAP(DO_PREMUL)
                 COLL__CUDA_SCALE_MAP(DO_SCALE)};

/* Where operands count from: IN, OUT, TMP. */
struct bases {
    uint64_t of[3];
};

/* Selected, not indexed: an index would put them into memory. */
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

/* The program, as one block of those that go through it. */
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
