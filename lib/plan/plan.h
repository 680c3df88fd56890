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
    ORDER_FREE,      /* any: the operation is as good as associative */
    ORDER_CANONICAL, /* the canonical tree, operands may swap: the same bits
                      * whatever the algorithm (algo.h says which tree) */
    ORDER_RANKS      /* the canonical tree, lower ranks on the left: for an
                      * operation that does not commute */
};

struct coll__view; /* lib/plan/view.h */

/* What is to be done, for one rank. */
struct coll__problem {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op; /* SUM for premul-sum, whose scaling is exec's */
    int is_user_op;  /* the caller's function instead; op is then SUM */
    enum coll__order order;
    int root; /* or the peer of a send or receive */
    int nranks, rank;
    size_t count; /* elements, as in the call */
    /* Of a collective whose name ends in v, as in coll_args but with displs
     * always there; borrowed.  Of alltoallv, gatherv and scatterv a rank knows
     * its own alone; `count` is then this rank's too. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    int in_place; /* this rank's; others may differ */
    int spoils_in; /* see coll__plan_nest(); never set by a caller */
    const struct coll__view *view; /* who is near whom; NULL: nobody knows */
};

/* BUF_IN is read only.  In place, this rank's own part of it is in BUF_OUT
 * instead (all of it, but in a reduce-scatter and a scatter) and that part of
 * BUF_IN is not mentioned.  BUF_TMP holds nothing until a step writes it. */
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
    X(ORDER, "order", 1, 1)   /* nothing: who uses dst waits for src */        \
    X(REDUCE, "reduce", 1, 1) /* dst = op(dst, src) */                         \
    X(SCALE, "scale", 0, 1)   /* dst = dst / nranks, for avg */                \
    X(SEND, "send", 1, 0)     /* src to peer */                                \
    X(RECV, "recv", 0, 1)     /* dst from peer */                              \
    X(RECV_REDUCE, "recv_reduce", 1, 1) /* dst = op(src, what peer sends) */

enum coll__step_kind {
#define X(name, text, reads, writes) STEP_##name,
    COLL_STEP_MAP(X)
#undef X
    N_STEP_KINDS
};

/* The spans of a step are equally long and lie apart, but for a RECV_REDUCE
 * that combines in place: its src may be its dst. */
struct coll__step {
    enum coll__step_kind kind : 16;
    unsigned src_first : 1; /* of REDUCE: dst = op(src, dst); of RECV_REDUCE:
                             * dst = op(what peer sends, src) */
    unsigned is_joined : 1; /* of a receive: the next step sends what this one
                             * leaves, and both are done at once: when the
                             * message is there, and room for the other one */
    unsigned phase : 14;    /* see coll__pass_split() */
    int peer;               /* -1 for a local step */
    struct coll__span dst, src;
};

struct coll__plan {
    struct coll__step *steps;
    int n_steps, cap_steps;
    int status;     /* of the building so far */
    unsigned phase; /* of the steps that are added */
    size_t tmp_len; /* bytes of BUF_TMP */
    const char *algorithm;

    /* Of an algorithm: done step by step as listed, with sends that are
     * buffered, it gets to its end. */
    int runs_as_listed;

    /* After coll__plan_in_turns(): so it does with so many slots between two
     * ranks; 0: nobody knows. */
    int n_slots;

    /* After coll__plan_link(): step i waits for n_deps[i] others to finish, and
     * after[first_after[i] .. first_after[i + 1]) wait for step i.  same[i]
     * numbers groups of sends, from 1: those of a group carry the same bytes;
     * 0 for other steps. */
    int *n_deps, *first_after, *after, *same;
};

/* Say whether a collective combines elements. */
int coll__reduces(enum coll_collective collective);

/* Bytes of the call's whole `count`. */
size_t coll__problem_bytes(const struct coll__problem *pb);

/* Bytes of all ranks' parts together, the same on every rank; SIZE_MAX where a rank
 * knows its own alone (coll__has_own_counts()). */
size_t coll__problem_total(const struct coll__problem *pb);

/* Bytes of BUF_IN and of BUF_OUT on this rank, up to the last one that the
 * collective mentions (parts of a v collective may leave gaps). */
size_t coll__problem_len(const struct coll__problem *pb, enum coll__buf buf);

/* How a buffer is made up. */
enum coll__shape {
    SHAPE_NONE,  /* not there on this rank */
    SHAPE_WHOLE, /* one vector of `count` elements */
    SHAPE_PARTS  /* one part for each rank, as in coll__part() */
};
enum coll__shape coll__problem_shape(const struct coll__problem *pb,
                                     enum coll__buf buf);

/* Can this rank work in place?  Only those that have both buffers. */
int coll__problem_may_be_in_place(const struct coll__problem *pb);

/* The part of a buffer (SHAPE_PARTS) that belongs to rank r (modulo nranks):
 * of an allgather's OUT what comes from r, of a reduce-scatter's IN what goes
 * to r, and so on; for BUF_TMP, where the parts of the buffer of the call that
 * has them would be, packed or not as they are there. */
struct coll__span coll__part(const struct coll__problem *pb, enum coll__buf buf,
                             int r);

/* Append a step.  Without memory the plan's status says so and the step is
 * dropped; builders return plan_status() at their end. */
void coll__plan_add(struct coll__plan *plan, const struct coll__step *step);

/* Return memory for n items of a builder's own, to free() at its end; NULL sets
 * the plan's status (logged). */
void *coll__plan_alloc(struct coll__plan *plan, int n, size_t size);

/* Take out the steps whose peer is COLL__DROPPED; the scratch may shrink. */
enum { COLL__DROPPED = -2 };
void coll__plan_compact(struct coll__plan *plan);

/* Say whether a kind of step receives, or sends or receives; reads its src; writes,
 * or reads, its dst; its name. */
int coll__step_is_recv(enum coll__step_kind kind);
int coll__step_is_message(enum coll__step_kind kind);
int coll__step_reads_src(enum coll__step_kind kind);
int coll__step_writes_dst(enum coll__step_kind kind);
int coll__step_reads_dst(enum coll__step_kind kind);
const char *coll__step_name(enum coll__step_kind kind);

/* The passes share a flow of the plan, which each cuts where it needs one and
 * finds none: {0} at first, ended by their caller with coll__flow_fini(). */
struct coll__flow;

/* Let steps read the source of a COPY instead of what it wrote, where that
 * source is not written again, and drop each COPY that then has no reader.
 * Never changes the result, and adds no wait.  COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_forward(struct coll__plan *plan, struct coll__flow *flow);

/* Turn RECV into scratch and the REDUCE that alone reads it into one
 * RECV_REDUCE.  Never changes the result.  COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_fuse(struct coll__plan *plan, struct coll__flow *flow);

/* Turn RECV and a REDUCE right behind it, of what came with a span that nobody
 * writes, into one RECV_REDUCE.  Never changes the result, and adds no wait.
 * COLL_OK or COLL_ERR_NOMEM. */
int coll__pass_absorb(struct coll__plan *plan, struct coll__flow *flow);

#define COLL__MAX_PIECES 256 /* of one step */

/* Recut steps longer than chunk bytes (a multiple of the element size; 0 leaves
 * the plan alone) into pieces, so that a piece can go on while the next comes
 * in.  Both ends of a message are cut alike.  COLL_OK or COLL_ERR_NOMEM.
 *
 * The pieces of a builder's phases are interleaved: piece k of phase f stands
 * with piece k + 1 of phase f - 1, so that the phases run side by side and what
 * one leaves is still in the cache when the next needs it.  For that a phase
 * must use only what earlier ones left in spans of the same lengths, and all
 * ranks must agree on the phase of a message.
 *
 * With band, which is for plans of which that is true of each step, there are as
 * many pieces as it takes: so many of them go through all steps before the next
 * ones do.  So a rank has few under way between what comes and what it passes on
 * of it.  A COPY of what no step writes to where no other one is stays whole. */
int coll__pass_split(struct coll__plan *plan, struct coll__flow *flow,
                     size_t chunk, int band);

/* Infer the edges: read after write, write after read, write after write.
 *
 * Cost:      O(n log n) for n steps whose spans nest or meet, as blocks do.
 */
int coll__plan_link(struct coll__plan *plan);

/* Print a plan, a step a line:
 * "3 recv_reduce peer 1 out[0,4096) waits for 0 2", in the words of a plan
 * file (load.c). */
void coll__plan_dump(const struct coll__plan *plan, FILE *to);

/* Does step `to` of a linked plan send what step i leaves, all of it, and wait for
 * nothing else? */
int coll__plan_passes_on(const struct coll__plan *plan, int i, int to);

/* Forget what coll__plan_link() inferred, as before a change of steps. */
void coll__plan_unlink(struct coll__plan *plan);

/* Bytes of memory that it holds. */
size_t coll__plan_bytes(const struct coll__plan *plan);

void coll__plan_fini(struct coll__plan *plan);

#endif
