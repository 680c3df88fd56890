/* SPDX-License-Identifier: BSD-3-Clause */
/* algo.h - what a builder sees, and the table of algorithms.
 *
 * An algorithm is one file and one line in list.c.  Its builder is a pure
 * function of the problem: it names blocks and peers.  lib/plan adds dependencies,
 * pipelining and fusion.
 *
 * The canonical tree.  Let m be the largest power of two that is not above p, and
 * e = p - m.  The ranks 0 .. 2e-1 combine in pairs (0 1) (2 3) ...  This leaves m
 * operands in the order of the ranks, which combine in a perfect binary tree,
 * neighbours first.  Algorithms with `is_canonical` combine every element in this
 * tree, and use plan_reduce_left() if the received operand is from lower ranks.
 * So they all give the same bits, and an operation that does not commute gets its
 * operands in order.
 *
 *   p = 5, e = 1:   ((0 1) 2) (3 4)      p = 3, e = 1:   (0 1) 2
 *
 * A scan has a canonical tree for each rank: that of scan_recursive_doubling.c.
 */
#ifndef COLL_LIB_ALGO_ALGO_H
#define COLL_LIB_ALGO_ALGO_H

#include "lib/plan/fold.h"
#include "lib/plan/schedule.h"
#include "lib/plan/plan.h"
#include "lib/plan/view_cost.h"

/* The bit of a collective in coll__algo.serves. */
#define COLL_FOR(name) (1u << COLL_##name)

struct coll__algo {
    const char *name; /* "ring"; the name in COLL_ALGO */
    const char *what; /* one line */
    unsigned serves;  /* COLL_FOR() of its collectives; two algorithms of one
                       * collective never share a name */
    int is_canonical; /* it uses the canonical tree */
    int goes_whole;   /* messages are not cut: a pipeline would not help */
    int goes_apart;   /* a step uses only what earlier steps left in spans of its own
                       * length: pieces may go through all steps one by one */
    int goes_up; /* its phases are the levels of the machine, up and down again, and
                  * any slice of the vector could be a problem of its own */

    /* Write this rank's steps; returns plan_status(). */
    int (*build)(const struct coll__problem *pb, struct coll__plan *plan);

    /* Predict the time in s for all ranks.  The result must be the same on every rank,
     * so it must not use what only one rank knows.  pb->view is set. */
    double (*cost)(const struct coll__problem *pb);

    /* Say why it cannot serve this problem ("needs hosts of several ranks"), or return
     * NULL; the same on every rank.  NULL as a pointer: it serves any problem. */
    const char *(*refuses)(const struct coll__problem *pb);
};

/* All algorithms; NULL-terminated. */
extern const struct coll__algo *const coll__algos[];

/* ---- from a builder to a plan ----------------------------------------------- */

/* Say why an algorithm cannot serve a problem, in words that follow its name; NULL if
 * it can.  The same on every rank. */
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

/* Build a plan for streams, in which each step costs a call.  Messages are reduced
 * while they are received, if possible.  Algorithms that set goes_apart have one piece
 * less under way than there are slots, since a rank that passes pieces on needs a slot
 * for the piece that it receives.  Messages may still be longer than a slot
 * (coll__plan_fit()). */
int coll__plan_build_for_slots(const struct coll__algo *algo,
                               const struct coll__problem *pb,
                               const struct coll__slots *slots,
                               struct coll__plan *plan);

/* ---- spans -------------------------------------------------------------- */

/* Return the call's `count` elements, at the start of buf. */
static inline struct coll__span coll__whole(const struct coll__problem *pb,
                                            enum coll__buf buf)
{
    return (struct coll__span){buf, 0, coll__problem_bytes(pb)};
}

/* Return block b (modulo nranks) of the call's count, cut into nranks blocks whose
 * sizes differ by at most one element. */
struct coll__span coll__block(const struct coll__problem *pb,
                              enum coll__buf buf, int b);

/* Return block b (0 to n - 1) of a span, cut into n blocks of whole elements whose
 * sizes differ by at most one element. */
struct coll__span coll__cut(const struct coll__problem *pb,
                            struct coll__span span, int n, int b);

/* Return blocks [from, to) of the same cut as one span. */
struct coll__span coll__cuts(const struct coll__problem *pb,
                             struct coll__span span, int n, int from, int to);

/* Return parts [from, from + n) of a buffer as one span.  All counts must be equal,
 * and the range must not wrap. */
static inline struct coll__span coll__parts(const struct coll__problem *pb,
                                            enum coll__buf buf, int from, int n)
{
    size_t len = coll__problem_bytes(pb);

    return (struct coll__span){buf, (size_t)from * len, (size_t)n * len};
}

/* Return the bytes of the parts of n ranks from rank `first` on (modulo nranks). */
size_t coll__parts_len(const struct coll__problem *pb, enum coll__buf buf,
                       int first, int n);

/* Return the bytes of the longest part of all ranks; this rank must know all counts. */
size_t coll__longest_part(const struct coll__problem *pb, enum coll__buf buf);

/* Cut a span among the first `owners` of n ranks: counts[0 .. n) gets the elements of
 * each rank, counts[n .. 2n) the index of its first element in the span. */
void coll__cut_counts(const struct coll__problem *pb, struct coll__span span,
                      int n, int owners, size_t *counts);

/* Return the mean bytes of a part of buf (SHAPE_PARTS on some rank), for predictions;
 * 0 for alltoallv, gatherv and scatterv, since no rank knows all counts. */
double coll__mean_part(const struct coll__problem *pb, enum coll__buf buf);

/* Return where this rank's own input is: its part of IN or, in place, of OUT. */
struct coll__span coll__own_in(const struct coll__problem *pb);

/* ---- steps -------------------------------------------------------------- */

/* dst = src; no step if both are the same span. */
static inline void plan_copy(struct coll__plan *plan, struct coll__span dst,
                             struct coll__span src)
{
    if (dst.buf != src.buf || dst.off != src.off)
        coll__plan_add(plan, &(struct coll__step){.kind = STEP_COPY,
                                                  .peer = -1,
                                                  .dst = dst,
                                                  .src = src});
}

/* dst = the n parts of IN from rank `first` on (modulo nranks), packed. */
void coll__plan_pack(const struct coll__problem *pb, struct coll__plan *plan,
                     struct coll__span dst, int first, int n);

/* Copy such packed parts to their places in OUT; src.len is ignored. */
void coll__plan_unpack(const struct coll__problem *pb, struct coll__plan *plan,
                       int first, int n, struct coll__span src);

/* Make later users of dst wait until src is there; no data moves. */
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

/* dst now holds the reduction over all ranks: divide it, if the operation is avg. */
static inline void plan_finish(const struct coll__problem *pb,
                               struct coll__plan *plan, struct coll__span dst)
{
    if (pb->op == COLL_AVG)
        coll__plan_add(plan, &(struct coll__step){.kind = STEP_SCALE,
                                                  .peer = -1,
                                                  .dst = dst});
}

/* Begin a new phase: its pieces may run while the phase before is still running.  See
 * coll__pass_split(). */
static inline void plan_next_phase(struct coll__plan *plan)
{
    plan->phase++;
}

static inline int plan_status(const struct coll__plan *plan)
{
    return plan->status;
}

/* The phases that an algorithm may set if it goes_up. */
#define COLL__PHASES ((size_t)2 * COLL__LEVELS)

/* ---- algorithms within algorithms ---------------------------------------- */

/* How an inner problem maps to the outer one. */
struct coll__frame {
    const int *ranks; /* [inner nranks]: the outer rank of each inner rank */
    struct coll__span in, out; /* where the inner BUF_IN and BUF_OUT are */
};

/* Return the outer span of an inner one; the inner scratch begins at tmp_off. */
struct coll__span coll__nested_span(const struct coll__frame *frame,
                                    size_t tmp_off,
                                    const struct coll__span *inner);

/* Append the steps of another algorithm for an inner problem.  The inner rank is this
 * rank's place in frame->ranks.  The inner scratch begins after all that the plan has
 * used so far.
 *
 * The inner op must not be AVG (the outer algorithm divides).  A reduce-scatter whose
 * IN is not needed afterwards sets spoils_in and in_place, and frame->out to this
 * rank's part of frame->in.  Its builder then writes to BUF_IN and leaves the result
 * in its own part there.
 */
int coll__plan_nest(struct coll__plan *plan, const struct coll__algo *algo,
                    const struct coll__problem *inner,
                    const struct coll__frame *frame);

/* Build a plan whose slices of that many bytes go through the phases of the algorithm one
 * behind the other: phase f of slice k is listed with phase f - 1 of slice k + 1.  The
 * algorithm sets goes_up.  A status, logged. */
int coll__plan_build_slices(const struct coll__algo *algo,
                            const struct coll__problem *pb, size_t slice,
                            struct coll__plan *plan);

/* Return the collective's algorithm of that name; NULL if there is none. */
const struct coll__algo *coll__algo_find(enum coll_collective collective,
                                         const char *name);

/* Compare two predicted times.  Times that differ only by rounding are equal. */
static inline int coll__algo_is_cheaper(double seconds, double other)
{
    return seconds < other * (1 - 1e-9);
}

/* Find the cheapest of all algorithms that can serve the problem; among equal prices,
 * the first in the list.
 *
 * Result:    NULL if every algorithm refuses the problem; else *seconds is the
 *            predicted time.
 */
const struct coll__algo *coll__algo_cheapest(const struct coll__problem *pb,
                                             double *seconds);

#endif
