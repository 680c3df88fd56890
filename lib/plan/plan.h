/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - a plan: what one rank does for one problem, as plain data.
 *
 * A plan is a list of steps over byte spans of three symbolic buffers.  It
 * holds no pointer, clock or communicator, so it can be cached, printed and
 * checked like any value.  The life of a plan: a builder (lib/algo) writes
 * naive steps; forward, fuse and split rewrite them; coll__plan_link() infers
 * which step must wait for which from the spans that they share.
 *
 * Order is part of the meaning: the sends to one peer go out, and the receives
 * from one peer are taken, in the order of the list.
 */
#ifndef COLL_LIB_PLAN_PLAN_H
#define COLL_LIB_PLAN_PLAN_H

#include "include/coll/coll.h"

#include <stdio.h>

/* Which orders of combination a reduction allows. */
enum coll__order {
    ORDER_FREE,      /* any order: the operation counts as associative */
    ORDER_CANONICAL, /* the canonical tree (algo.h), operands may be swapped: the same
                      * bits for each algorithm */
    ORDER_RANKS      /* the canonical tree, lower ranks on the left: for an operation
                      * that does not commute */
};

struct coll__view; /* lib/plan/view.h */

/* A collective call, as one rank sees it. */
struct coll__problem {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op; /* AVG for a sum with a postscale; lib/exec has factors */
    int is_user_op;  /* use the caller's function; op is then SUM */
    int is_hosts_op; /* the host does its steps also for streams (lib/type/op.h) */
    enum coll__order order;
    int root; /* or the peer of a send or receive */
    int nranks, rank;
    size_t count; /* elements, as in the call */
    /* For a collective whose name ends in v: as in coll_args, but displs are always
     * set.  Borrowed.  In alltoallv, gatherv and scatterv a rank knows only its own
     * counts; `count` is then also this rank's own. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    int in_place; /* this rank's; others may differ */
    int spoils_in; /* see coll__plan_nest(); never set by a caller */
    const struct coll__view *view; /* which ranks are near each other; NULL: unknown */
};

/* BUF_IN is read only.  In place, this rank's own input is in BUF_OUT instead (all of
 * its input, except in a reduce-scatter and a scatter), and the plan does not mention
 * that part of BUF_IN.  BUF_TMP holds nothing until a step writes it. */
enum coll__buf { BUF_IN, BUF_OUT, BUF_TMP, N_BUFS };

struct coll__span {
    enum coll__buf buf;
    size_t off, len; /* bytes */
};

static inline int coll__same_span(const struct coll__span *a,
                                  const struct coll__span *b)
{
    return a->buf == b->buf && a->off == b->off && a->len == b->len;
}

static inline int coll__spans_overlap(const struct coll__span *a,
                                      const struct coll__span *b)
{
    return a->buf == b->buf && a->off < b->off + b->len &&
           b->off < a->off + a->len;
}

/* X(name, text, reads src, writes dst) */
#define COLL_STEP_MAP(X)                                                       \
    X(COPY, "copy", 1, 1)     /* dst = src */                                  \
    X(ORDER, "order", 1, 1)   /* no bytes: users of dst wait for src */        \
    X(REDUCE, "reduce", 1, 1) /* dst = op(dst, src) */                         \
    X(SCALE, "scale", 0, 1)   /* avg: dst = dst / nranks, or times a factor */ \
    X(SEND, "send", 1, 0)     /* src to peer */                                \
    X(RECV, "recv", 0, 1)     /* dst from peer */                              \
    X(RECV_REDUCE, "recv_reduce", 1, 1) /* dst = op(src, peer's message) */

enum coll__step_kind {
#define X(name, text, reads, writes) STEP_##name,
    COLL_STEP_MAP(X)
#undef X
    N_STEP_KINDS
};

/* The spans of a step have one length and do not overlap.  Exception: the src of a
 * RECV_REDUCE that combines in place is its dst. */
struct coll__step {
    enum coll__step_kind kind : 16;
    unsigned src_first : 1; /* REDUCE: dst = op(src, dst); RECV_REDUCE: dst =
                             * op(message, src) */
    unsigned is_fused : 1; /* a receive: the next step sends what this step leaves, and
                            * both are done at the same time, when the message is there
                            * and the send has a free slot */
    unsigned phase : 14;    /* see coll__pass_split() */
    int peer;               /* -1 for a local step */
    struct coll__span dst, src;
};

struct coll__plan {
    struct coll__step *steps;
    int n_steps, cap_steps;
    int status;     /* of building it so far */
    unsigned phase; /* of the next step to be added */
    size_t tmp_len; /* bytes of BUF_TMP */
    const char *algorithm;

    /* The plan comes from an algorithm that also finishes if its steps run one by one,
     * as listed, with buffered sends. */
    int runs_as_listed;

    /* After coll__plan_reorder(): the number of slots between two ranks with which
     * the plans finish; 0: unknown. */
    int n_slots;

    /* After coll__plan_link(): step i waits for n_deps[i] other steps, and the steps
     * after[first_after[i] .. first_after[i + 1]) wait for step i.  same[i] is the
     * number, from 1, of a group of sends that carry the same bytes; 0 for other
     * steps. */
    int *n_deps, *first_after, *after, *same;
};

/* Say whether a collective combines elements. */
int coll__reduces(enum coll_collective collective);

/* Return the bytes of the call's whole `count`. */
size_t coll__problem_bytes(const struct coll__problem *pb);

/* Return the bytes of all ranks' parts together, which is the same on every rank;
 * SIZE_MAX if a rank knows only its own (coll__has_own_counts()). */
size_t coll__problem_total(const struct coll__problem *pb);

/* Return the bytes of BUF_IN (BUF_OUT) on this rank, up to the last byte that the
 * collective uses (parts of a v collective may leave gaps). */
size_t coll__problem_len(const struct coll__problem *pb, enum coll__buf buf);

/* Are n numbers equal, or is neither array there? */
int coll__same_numbers(const size_t *a, const size_t *b, int n);

/* Do two problems of one communicator ask for the same, in the same places?  Their views
 * are not compared. */
int coll__same_problem(const struct coll__problem *a,
                       const struct coll__problem *b);

/* What a buffer consists of. */
enum coll__shape {
    SHAPE_NONE,  /* not there on this rank */
    SHAPE_WHOLE, /* one vector of `count` elements */
    SHAPE_PARTS  /* one part for each rank, as in coll__part() */
};
enum coll__shape coll__problem_shape(const struct coll__problem *pb,
                                     enum coll__buf buf);

/* Can this rank work in place?  Only ranks that have both buffers can. */
int coll__problem_may_be_in_place(const struct coll__problem *pb);

/* Return the part of a buffer (SHAPE_PARTS) that belongs to rank r (modulo nranks): of
 * an allgather's OUT the part that comes from r, of a reduce-scatter's IN the part
 * that goes to r, and so on.  For BUF_TMP, which mirrors the buffer of the call that
 * has parts: the same place as in that buffer, packed or not. */
struct coll__span coll__part(const struct coll__problem *pb, enum coll__buf buf,
                             int r);

/* Append a step.  Without memory the step is dropped and the plan's status is set;
 * builders return plan_status() at their end. */
void coll__plan_add(struct coll__plan *plan, const struct coll__step *step);

/* Return memory for n items, which the builder frees at its end; NULL sets the plan's
 * status (logged). */
void *coll__plan_alloc(struct coll__plan *plan, int n, size_t size);

/* Drop the steps whose peer is COLL__DROPPED; the scratch may shrink. */
enum { COLL__DROPPED = -2 };
void coll__plan_compact(struct coll__plan *plan);

/* Say whether a kind of step receives (is_recv), sends or receives (is_message), reads
 * its src, writes its dst, or reads its dst.  coll__step_name() returns the kind's
 * name. */
int coll__step_is_recv(enum coll__step_kind kind);
int coll__step_is_message(enum coll__step_kind kind);
int coll__step_reads_src(enum coll__step_kind kind);
int coll__step_writes_dst(enum coll__step_kind kind);
int coll__step_reads_dst(enum coll__step_kind kind);
const char *coll__step_name(enum coll__step_kind kind);

/* The passes share one flow of the plan: {0} at first.  A pass cuts the buffers if it
 * needs the segments and they are not there.  The caller ends it by coll__flow_fini(). */
struct coll__flow;

/* Let steps read the source of a COPY instead of its destination if the source is not
 * written again, and drop each COPY that then has no reader.  Never changes the
 * result, and adds no wait.  COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_forward(struct coll__plan *plan, struct coll__flow *flow);

/* Turn a RECV into scratch and its only reader, a REDUCE, into one RECV_REDUCE.  Never
 * changes the result.  COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_fuse(struct coll__plan *plan, struct coll__flow *flow);

/* Turn a RECV and the next step, a REDUCE of the received operand with a span that no
 * step writes, into one RECV_REDUCE.  Never changes the result, and adds no wait.
 * COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_absorb(struct coll__plan *plan, struct coll__flow *flow);

#define COLL__MAX_PIECES 256 /* of one step */

/* Cut steps that are longer than chunk bytes (a multiple of the element size; 0 leaves
 * the plan alone) into pieces, so that the next step can start on one piece while the
 * following piece arrives.  Both ends of a message are cut alike.  COLL_OK or
 * COLL_ERR_NOMEM.
 *
 * The pieces of a builder's phases are interleaved: piece k of phase f is listed with
 * piece k + 1 of phase f - 1.  So the phases run side by side, and the next phase
 * finds its input in the cache.  This needs two things: a phase uses only what earlier
 * phases left in spans of the same lengths, and all ranks agree on the phase of a
 * message.
 *
 * band > 0 is for plans in which each step could be a phase.  There is no limit on the
 * number of pieces then, and `band` pieces go through all steps before the next ones
 * start.  So a rank holds few pieces that it has received and not yet passed on.  A
 * COPY from a buffer that no step writes, to bytes that no other step uses, stays
 * whole.
 */
int coll__pass_split(struct coll__plan *plan, struct coll__flow *flow,
                     size_t chunk, int band);

/* Infer the edges: read after write, write after read, write after write.
 *
 * Cost:      O(n log n) for n steps whose spans nest or touch, as blocks do.
 */
int coll__plan_link(struct coll__plan *plan);

/* Print a plan, one step a line, in the words of a plan file (load.c): "3 recv_reduce
 * peer 1 out[0,4096) waits for 0 2". */
void coll__plan_dump(const struct coll__plan *plan, FILE *to);

/* In a linked plan, does step `to` send exactly what step i leaves, and wait for
 * nothing else? */
int coll__plan_passes_on(const struct coll__plan *plan, int i, int to);

/* Forget what coll__plan_link() has inferred, before the steps change. */
void coll__plan_unlink(struct coll__plan *plan);

/* Return the bytes of memory that it holds. */
size_t coll__plan_bytes(const struct coll__plan *plan);

void coll__plan_fini(struct coll__plan *plan);

#endif
