/* SPDX-License-Identifier: BSD-3-Clause */
/* algo.h - what a builder sees, and the table of algorithms.
 *
 * An algorithm is one file and one line in list.c.  Its builder is a pure
 * function of the problem: it names blocks and peers and leaves dependencies,
 * pipelining and fusion to lib/plan.
 *
 * The canonical tree.  With m the largest power of two that is not above p and
 * e = p - m, the ranks 0 .. 2e-1 combine in pairs (0 1) (2 3) ..., which leaves
 * m operands in the order of the ranks; these combine in a perfect binary tree,
 * neighbours first.  Algorithms that promise `is_canonical` combine every
 * element in this tree, and with plan_reduce_left() where the lower ranks'
 * operand is the one that comes in; so they all give the same bits, and an
 * operation that does not commute gets its operands in order.
 *
 *   p = 5, e = 1:   ((0 1) 2) (3 4)      p = 3, e = 1:   (0 1) 2
 */
#ifndef COLL_LIB_ALGO_ALGO_H
#define COLL_LIB_ALGO_ALGO_H

#include "lib/plan/schedule.h"
#include "lib/plan/plan.h"
#include "lib/plan/view_cost.h"

/* The bit of a collective in coll__algo.serves. */
#define COLL_FOR(name) (1u << COLL_##name)

struct coll__algo {
    const char *name; /* "ring"; what COLL_ALGO says */
    const char *what; /* one line */
    unsigned serves;  /* COLL_FOR() of its collectives; of one it is the only
                       * one with its name */
    int is_canonical; /* see above */
    int goes_whole;   /* messages are not cut: no pipeline gains by it */
    int goes_apart;   /* a step uses only what others left in spans of its
                     * length: pieces may go through all steps one by one */

    /* Write this rank's steps; returns plan_status(). */
    int (*build)(const struct coll__problem *pb, struct coll__plan *plan);

    /* Predicted time in s for all ranks, the same whichever rank asks: it may
     * look at nothing that only one rank knows.  pb->view is there. */
    double (*cost)(const struct coll__problem *pb);

    /* Say why it cannot serve this problem ("needs hosts of several ranks"),
     * or return NULL; the same on every rank.  NULL: serves any. */
    const char *(*refuses)(const struct coll__problem *pb);
};

/* All algorithms, NULL at the end. */
extern const struct coll__algo *const coll__algos[];

/* ---- from a builder to a plan ----------------------------------------------- */

/* Say why an algorithm cannot serve a problem, in words that follow its name;
 * NULL when it can.  The same on every rank. */
const char *coll__algo_refuses(const struct coll__algo *algo,
                               const struct coll__problem *pb);

/* Build, forward, fuse, split and link one rank's plan.
 *
 * Ownership: *plan is the caller's, to end by coll__plan_fini(); empty on
 *            failure.
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__plan_build(const struct coll__algo *algo,
                     const struct coll__problem *pb, size_t chunk,
                     struct coll__plan *plan);

/* The same for streams, where each step costs a call: what comes is reduced as it is
 * taken wherever that can be, and there are so many pieces at a time where the
 * algorithm goes_apart (coll__pass_split()).  band 0: as above. */
int coll__plan_build_banded(const struct coll__algo *algo,
                            const struct coll__problem *pb, size_t chunk,
                            int band, struct coll__plan *plan);

/* The same for ranks that do one thing after the other, as listed, with no more
 * room between two of them than that.
 *
 * Every rank has the others' plans built, too, all as if they were in place where
 * they may be: that adds to what messages wait for and takes nothing from it, so
 * the order suits those that are not.
 *
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INVALID (there is no such order: the
 *            algorithm is wrong), logged.
 * Cost:      that of coll__plan_build() for each rank, and of running them.
 */
int coll__plan_build_in_turns(const struct coll__algo *algo,
                              const struct coll__problem *pb,
                              const struct coll__room *room,
                              struct coll__plan *plan);

/* The buffers, as bits 1 << BUF_..., of which ranks may read each other's in place:
 * those that lie alike on all ranks, if the callers' do.  Others work in place where
 * this rank does. */
unsigned coll__problem_readable(const struct coll__problem *pb);

/* The problem as it is where these buffers are to be read.  Who receives a broadcast
 * does not know whether its root works in place: then all is sent from OUT, as if in
 * place on all ranks, and a root that has it in IN copies it there before. */
struct coll__problem coll__problem_lying(const struct coll__problem *pb,
                                         unsigned lying);

/* Find the messages of such a plan that may be read where they lie on their sender
 * until its run ends: it writes nothing there any more.
 *
 * Shapes:    bufs: of the readable ones those that are to be read.
 * Result:    (*lying)[i] for step i: what a send takes, or what a receive's sender
 *            takes; len 0 of other steps.  Both ends find alike.
 * Ownership: *lying is the caller's, to end by free().
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INTERNAL; logged.
 * Cost:      that of coll__plan_build() for each rank that it receives from.
 */
int coll__plan_lying(const struct coll__algo *algo,
                     const struct coll__problem *pb,
                     const struct coll__room *room,
                     const struct coll__plan *plan, unsigned bufs,
                     struct coll__span **lying);

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

/* Block b (within 0 to n - 1) of a span, cut into n blocks of whole elements
 * that differ by one element at most. */
struct coll__span coll__cut(const struct coll__problem *pb,
                            struct coll__span span, int n, int b);

/* Blocks [from, to) of that cut as one span. */
struct coll__span coll__cuts(const struct coll__problem *pb,
                             struct coll__span span, int n, int from, int to);

/* Parts [from, from + n) of a buffer as one span, where the counts are all the
 * same and nothing wraps. */
static inline struct coll__span coll__parts(const struct coll__problem *pb,
                                            enum coll__buf buf, int from, int n)
{
    size_t len = coll__problem_bytes(pb);

    return (struct coll__span){buf, (size_t)from * len, (size_t)n * len};
}

/* Bytes of the parts of n ranks from rank `first` on (modulo nranks). */
size_t coll__parts_len(const struct coll__problem *pb, enum coll__buf buf,
                       int first, int n);

/* Bytes of the longest of them all; the counts must be known here. */
size_t coll__longest_part(const struct coll__problem *pb, enum coll__buf buf);

/* Cut a span among the first `owners` of n ranks: counts[0 .. n) are how many
 * elements each has, counts[n .. 2n) where they begin in the span. */
void coll__cut_counts(const struct coll__problem *pb, struct coll__span span,
                      int n, int owners, size_t *counts);

/* Bytes of a part of buf (SHAPE_PARTS on some rank), on the average: for
 * costs.  0 for alltoallv, gatherv and scatterv, whose counts no rank knows. */
double coll__mean_part(const struct coll__problem *pb, enum coll__buf buf);

/* Gather or scatter blocks of n bytes over a binomial tree of p ranks, each
 * message with all blocks of its subtree, in s. */
double coll__cost_gather(const struct coll__view *view, int p, double n);

/* Where this rank's own input lies: its part of IN or, in place, of OUT. */
struct coll__span coll__own_in(const struct coll__problem *pb);

/* ---- steps -------------------------------------------------------------- */

/* dst = src; nothing when they are the same span. */
static inline void plan_copy(struct coll__plan *plan, struct coll__span dst,
                             struct coll__span src)
{
    if (dst.buf != src.buf || dst.off != src.off)
        coll__plan_add(plan, &(struct coll__step){.kind = STEP_COPY,
                                                  .peer = -1,
                                                  .dst = dst,
                                                  .src = src});
}

/* dst = the n parts of buf from rank `first` on (modulo nranks), packed. */
void coll__plan_pack(const struct coll__problem *pb, struct coll__plan *plan,
                     struct coll__span dst, enum coll__buf buf, int first,
                     int n);

/* The other way: packed parts to their places; src.len does not matter. */
void coll__plan_unpack(const struct coll__problem *pb, struct coll__plan *plan,
                       enum coll__buf buf, int first, int n,
                       struct coll__span src);

/* Let what uses dst from here on wait until src is there: no data moves. */
static inline void plan_order(struct coll__plan *plan, struct coll__span dst,
                              struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_ORDER,
                                              .peer = -1,
                                              .dst = dst,
                                              .src = src});
}

/* dst = op(dst, src) */
static inline void plan_reduce(struct coll__plan *plan, struct coll__span dst,
                               struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_REDUCE,
                                              .peer = -1,
                                              .dst = dst,
                                              .src = src});
}

/* dst = op(src, dst) */
static inline void plan_reduce_left(struct coll__plan *plan,
                                    struct coll__span dst,
                                    struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_REDUCE,
                                              .src_first = 1,
                                              .peer = -1,
                                              .dst = dst,
                                              .src = src});
}

static inline void plan_send(struct coll__plan *plan, int peer,
                             struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_SEND,
                                              .peer = peer,
                                              .src = src});
}

static inline void plan_recv(struct coll__plan *plan, int peer,
                             struct coll__span dst)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_RECV,
                                              .peer = peer,
                                              .dst = dst});
}

/* Say that dst now holds the reduction over all ranks: for avg, divide it. */
static inline void plan_finish(const struct coll__problem *pb,
                               struct coll__plan *plan, struct coll__span dst)
{
    if (pb->op == COLL_AVG)
        coll__plan_add(plan, &(struct coll__step){.kind = STEP_SCALE,
                                                  .peer = -1,
                                                  .dst = dst});
}

/* What follows may be done piece by piece while what came before is: see
 * coll__pass_split(). */
static inline void plan_next_phase(struct coll__plan *plan)
{
    plan->phase++;
}

static inline int plan_status(const struct coll__plan *plan)
{
    return plan->status;
}

/* ---- algorithms within algorithms ---------------------------------------- */

/* Where a problem within a problem lives. */
struct coll__frame {
    const int *ranks;     /* [nranks of the inner]: the outer rank of each */
    struct coll__span in, out; /* what the inner BUF_IN and BUF_OUT are */
};

/* Append the steps of another algorithm for an inner problem, whose rank is
 * this one's place in frame->ranks.  Its scratch lies behind all that the plan
 * has used so far.
 *
 * The inner op must not be AVG (finish outside).  A reduce-scatter whose IN is
 * of no further use sets spoils_in and in_place, with frame->out this rank's
 * part of frame->in: its builder then writes to BUF_IN, and leaves the result
 * in its own part there.
 */
int coll__plan_nest(struct coll__plan *plan, const struct coll__algo *algo,
                    const struct coll__problem *inner,
                    const struct coll__frame *frame);

/* Return the algorithm of that name for that collective; NULL when there is
 * none. */
const struct coll__algo *coll__algo_find(enum coll_collective collective,
                                         const char *name);

/* Compare two predicted times.  Times that differ by their rounding alone are
 * the same. */
static inline int coll__algo_is_cheaper(double seconds, double other)
{
    return seconds < other * (1 - 1e-9);
}

/* Find the cheapest of all algorithms that can solve the problem; of those with
 * the same price, the first in the list.
 *
 * Result:    NULL if every algorithm refuses the problem; else *seconds is the
 *            predicted time.
 */
const struct coll__algo *coll__algo_cheapest(const struct coll__problem *pb,
                                             double *seconds);

/* ---- small numbers ------------------------------------------------------ */

/* The least k with 2^k >= n. */
static inline int log2_up(int n)
{
    int k = 0;

    while (1 << k < n)
        k++;
    return k;
}

/* The largest power of two that is not above n >= 1. */
static inline int power2_below(int n)
{
    int m = 1;

    while (m <= n / 2)
        m *= 2;
    return m;
}

/* Nodes in the subtree of node v in a binomial tree of p nodes: v and those
 * behind it.  The parent of v is v less its lowest bit. */
static inline int coll__subtree(int p, int v)
{
    return v && (v & -v) < p - v ? v & -v : p - v;
}

/* How the canonical tree's first step folds p ranks to m = 2^k of them. */
struct coll__fold {
    int m, e;    /* m operands; the first e of them are pairs of ranks */
    int operand; /* this rank's, 0 .. m-1; -1: folded into the rank before */
};

static inline struct coll__fold coll__fold_of(int p, int rank)
{
    int m = power2_below(p), e = p - m;
    int operand = rank >= 2 * e ? rank - e : rank % 2 ? -1 : rank / 2;

    return (struct coll__fold){m, e, operand};
}

/* The rank that holds an operand after the fold. */
static inline int coll__fold_rank(const struct coll__fold *fold, int operand)
{
    return operand < fold->e ? 2 * operand : operand + fold->e;
}

#endif
