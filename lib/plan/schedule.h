/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - plans for ranks that do one step after the other, as streams do, with
 * few message slots between two ranks.
 *
 * A builder lists steps in the order of the algorithm; run in that order, a plan may
 * need slots for a hundred messages.  Here all ranks are simulated with fewer slots,
 * and the steps are put into the order of that run.  The slot order of a rank is its
 * messages in that order: from which rank, or to which rank, the next message goes.
 */
#ifndef COLL_LIB_PLAN_SCHEDULE_H
#define COLL_LIB_PLAN_SCHEDULE_H

#include "lib/plan/plan.h"

/* The slots between two ranks, each way. */
struct coll__slots {
    int n_slots; /* the most messages under way from one rank to another */
    size_t slot; /* bytes of the longest message; a multiple of 64 */
    /* Bytes of an allreduce that go through all levels of the machine before the next
     * ones follow; a multiple of 64; 0: all bytes. */
    size_t slice;
};

/* Cut messages that are longer than `slot` bytes, and link the plan again.  Both ends
 * of a message are cut alike.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__plan_fit(struct coll__plan *plan, size_t slot);

struct coll__slot_order {
    int *lanes; /* [n]: 2 * peer, + 1 for a receive, + COLL__FUSED (below) */
    int n, n_slots;
};

/* Added to a receive's lane if the next message is a send of the received bytes and the
 * two are fused: both begin only when both can.  So the rank may pass the bytes on
 * while it receives them (plan.h: is_fused). */
#define COLL__FUSED (1 << 30)

/* Simulate all ranks' linked plans, one message of each rank a round, with at most
 * n_slots messages between two ranks; return the slot order of `rank`.
 *
 * A receive and the send that passes on its bytes are one fused step.  If the ranks get
 * stuck, the fused steps that block them are separated.
 *
 * Result:    the same on every rank that asks.  In a round sends come before receives.
 *            Among the sends, and among the receives, the order is that in which they
 *            became possible.
 * Ownership: *order is the caller's, to end by free(order->lanes).
 * Errors:    COLL_ERR_INVALID (no order would do), COLL_ERR_NOMEM; logged.
 * Cost:      O(n + r p) for n steps of all p ranks, in r rounds; p squared more each
 *            time that fused steps have to be separated.
 */
int coll__plans_slot_order(const struct coll__plan *plans, int nranks,
                           int n_slots, int rank,
                           struct coll__slot_order *order);

/* Return the slot order of this rank's plan alone, for plans in which no send waits for a
 * receive.  Both ends of a message compute its place from the distance of the ranks and
 * the message's number between them. */
int coll__plan_slot_order_alone(const struct coll__plan *plan, int nranks,
                                int n_slots, int rank,
                                struct coll__slot_order *order);

/* Put the steps of a linked plan into the slot order, and link it again.  Local steps go
 * where the rank would otherwise wait, but before the steps that need them.
 *
 * Errors:    COLL_ERR_INVALID (a message waits for another whose place is later, or the
 *            order's messages are not the plan's), COLL_ERR_NOMEM; logged; the plan is
 *            unchanged.
 */
int coll__plan_reorder(struct coll__plan *plan,
                       const struct coll__slot_order *order);

#endif
