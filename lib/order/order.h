/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - plans for ranks that do one step after the other, as streams do, with few
 * message slots between two ranks; and which messages they may read where they are.
 *
 * A rank needs to know the other ranks' plans for that, and builds them.
 */
#ifndef COLL_LIB_ORDER_ORDER_H
#define COLL_LIB_ORDER_ORDER_H

#include "lib/algo/algo.h"

/* What builds the plan of a rank, with messages of at most slots->slot bytes.  A status,
 * logged. */
struct coll__builder {
    int (*build)(const void *arg, const struct coll__problem *pb,
                 const struct coll__slots *slots, struct coll__plan *plan);
    const void *arg;
};

/* Set the slice, and the length of the longest message, at most slots->slot, with which a
 * plan for streams should take least time; the same on every rank. */
void coll__slots_for_levels(const struct coll__problem *pb,
                            struct coll__slots *slots);

/* Build a plan for ranks that do one step after the other, as listed, with only the
 * number of slots that `slots` gives two ranks.
 *
 * Every rank also builds the others' plans, as if all ranks that can worked in place.
 * Working in place only adds waits, so the order also suits ranks that do not.
 *
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INVALID (there is no such order: an
 *            algorithm would be wrong), those of build(); logged.
 * Cost:      that of build() for each rank, and of a simulated run.
 */
int coll__plan_in_slot_order(const struct coll__builder *from,
                             const struct coll__problem *pb,
                             const struct coll__slots *slots,
                             struct coll__plan *plan);

/* The same with an algorithm's plans. */
int coll__plan_build_in_slot_order(const struct coll__algo *algo,
                                   const struct coll__problem *pb,
                                   const struct coll__slots *slots,
                                   struct coll__plan *plan);

/* Return the buffers that other ranks may read directly, as bits 1 << BUF_...: those
 * that have the same layout on all ranks.  The function assumes that all ranks work in
 * place if this rank does. */
unsigned coll__problem_readable(const struct coll__problem *pb);

/* Return the problem to build if the buffers `direct` are read directly.  The receivers
 * of a broadcast do not know whether its root works in place.  So all ranks build the
 * plan as if in place, and send from OUT; a root whose vector is in IN copies it to
 * OUT first. */
struct coll__problem coll__problem_read_direct(const struct coll__problem *pb,
                                               unsigned direct);

/* What is read directly. */
struct coll__direct {
    const struct coll__algo
        *algo; /* all ranks' plans are its for `pb` and `slots` */
    const struct coll__problem *pb;
    const struct coll__slots *slots;
    unsigned bufs; /* the readable buffers that are to be read directly */
};

/* Find the messages of a rank's plan that the receiver may read directly, at any time
 * until the sender's run ends: the sender does not write these bytes again.
 *
 * Result:    (*direct)[i] for step i: the span that a send reads, or for a receive the
 *            sender's span; len 0 for other steps.  Both ends find the same messages.
 * Ownership: *direct is the caller's, to end by free().
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INTERNAL; logged.
 * Cost:      that of coll__plan_build() for each rank that it receives from.
 */
int coll__plan_direct_reads(const struct coll__direct *of,
                            const struct coll__plan *plan,
                            struct coll__span **direct);

/* Return the problem of rank r, which works in place if this rank does. */
struct coll__problem coll__problem_of(const struct coll__problem *pb, int r);

/* Build the plan of a rank, with messages of at most slots->slot bytes.  Its steps are
 * not yet in slot order.  A status, logged. */
int coll__plan_build_fit(const struct coll__algo *algo,
                         const struct coll__problem *pb,
                         const struct coll__slots *slots,
                         struct coll__plan *plan);

#endif
