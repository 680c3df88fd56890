/* SPDX-License-Identifier: BSD-3-Clause */
/* algo.h - what a builder sees, and the table of algorithms.
 *
 * An algorithm is one file and one line in list.c.  Its builder is a pure
 * function of the problem: it names blocks and peers and leaves dependencies,
 * pipelining and fusion to lib/plan.
 */
#ifndef COLL_LIB_ALGO_ALGO_H
#define COLL_LIB_ALGO_ALGO_H

#include "lib/plan/plan.h"

/* What the cost formulas are made of; the same on every rank. */
struct coll__cost {
    double alpha; /* s a message */
    double beta;  /* s a byte sent */
    double gamma; /* s a byte reduced or copied */
    size_t chunk; /* bytes of a pipeline chunk, 0 whole messages */
};

struct coll__algo {
    const char *name; /* "ring"; what COLL_ALGO says */
    const char *what; /* one line */
    enum coll_collective collective;

    /* Write this rank's steps; returns plan_status(). */
    int (*build)(const struct coll__problem *pb, struct coll__plan *plan);

    /* Predicted time in s for all ranks, the same whichever rank asks. */
    double (*cost)(const struct coll__problem *pb,
                   const struct coll__cost *cost);
};

/* All algorithms, NULL at the end. */
extern const struct coll__algo *const coll__algos[];

/* ---- spans -------------------------------------------------------------- */

/* The whole of the call's `count` elements at the start of buf. */
static inline struct coll__span coll__whole(const struct coll__problem *pb,
                                            enum coll__buf buf)
{
    return (struct coll__span){buf, 0, coll__problem_bytes(pb)};
}

/* Block b (modulo nranks) of the call's count, cut into nranks blocks that
 * differ by one element at most. */
struct coll__span coll__block(const struct coll__problem *pb,
                              enum coll__buf buf, int b);

/* n slots of `count` elements each, from slot i on: an allgather's blocks. */
static inline struct coll__span coll__slots(const struct coll__problem *pb,
                                            enum coll__buf buf, int i, int n)
{
    size_t bytes = coll__problem_bytes(pb);

    return (struct coll__span){buf, (size_t)i * bytes, (size_t)n * bytes};
}

/* ---- steps -------------------------------------------------------------- */

static inline void plan_copy(struct coll__plan *plan, struct coll__span dst,
                             struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){STEP_COPY, -1, dst, src});
}

static inline void plan_reduce(struct coll__plan *plan, struct coll__span dst,
                               struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){STEP_REDUCE, -1, dst, src});
}

static inline void plan_send(struct coll__plan *plan, int peer,
                             struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){STEP_SEND, peer, {0}, src});
}

static inline void plan_recv(struct coll__plan *plan, int peer,
                             struct coll__span dst)
{
    coll__plan_add(plan, &(struct coll__step){STEP_RECV, peer, dst, {0}});
}

/* Say that dst now holds the sum over all ranks: for avg, divide it. */
static inline void plan_finish(const struct coll__problem *pb,
                               struct coll__plan *plan, struct coll__span dst)
{
    if (pb->collective == COLL_ALLREDUCE && pb->op == COLL_AVG)
        coll__plan_add(plan, &(struct coll__step){STEP_SCALE, -1, dst, {0}});
}

static inline int plan_status(const struct coll__plan *plan)
{
    return plan->status;
}

/* The least k with 2^k >= n. */
static inline int log2_up(int n)
{
    int k = 0;

    while (1 << k < n)
        k++;
    return k;
}

#endif
