/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - plans for ranks that do one step after the other, as streams do, with
 * few message slots between two ranks.
 *
 * A builder lists steps in the order of the algorithm; run in that order, a plan may
 * need slots for a hundred messages.  Here all ranks are simulated with fewer slots,
 * and the steps are put into the order of that run.  The turns of a rank are its
 * messages in that order: from which rank, or to which rank, the next message goes.
 */
#ifndef COLL_LIB_PLAN_SCHEDULE_H
#define COLL_LIB_PLAN_SCHEDULE_H

#include "lib/plan/plan.h"

/* The slots between two ranks, each way. */
struct coll__room {
    int n_slots; /* the most messages under way from one rank to another */
    size_t slot; /* bytes of the longest message; a multiple of 64 */
};

/* Cut messages that are longer than `slot` bytes, and link the plan again.  Both ends
 * of a message are cut alike.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__plan_fit(struct coll__plan *plan, size_t slot);

struct coll__turns {
    int *lanes; /* [n]: 2 * peer, + 1 for a receive, + COLL__JOINED (below) */
    int n, n_slots;
};

/* Added to a receive's turn if the next turn is a send of the received bytes and both
 * are joined: neither goes on before both can.  So the rank may pass the bytes on
 * while it receives them (plan.h: is_joined). */
#define COLL__JOINED (1 << 30)

/* Simulate all ranks' linked plans, one message of each rank a round, with at most
 * n_slots messages between two ranks; return the turns of `rank`.
 *
 * A receive and the send that passes on its bytes are one turn.  If the ranks get
 * stuck, the pairs that block them are parted into two turns.
 *
 * Result:    the same on every rank that asks.  In a round sends go before receives;
 *            among each, the message that could go on first is first.
 * Ownership: *turns is the caller's, to end by free(turns->lanes).
 * Errors:    COLL_ERR_INVALID (no order would do), COLL_ERR_NOMEM; logged.
 * Cost:      O(n + r p) for n steps of all p ranks, in r rounds; p squared more each
 *            time that joined steps have to be parted.
 */
int coll__plans_turns(const struct coll__plan *plans, int nranks, int n_slots,
                      int rank, struct coll__turns *turns);

/* Return the turns of this rank's plan alone, for plans in which no send waits for a
 * receive.  Both ends of a message compute its turn from the distance of the ranks and
 * the message's number between them. */
int coll__plan_turns_alone(const struct coll__plan *plan, int nranks,
                           int n_slots, int rank, struct coll__turns *turns);

/* Put the steps of a linked plan into the order of its messages' turns, and link it
 * again.  Local steps go where the rank would otherwise wait, but before the steps
 * that need them.
 *
 * Errors:    COLL_ERR_INVALID (a message waits for another whose turn is later, or the
 *            turns are not the plan's messages), COLL_ERR_NOMEM; logged; the plan is
 *            unchanged.
 */
int coll__plan_in_turns(struct coll__plan *plan,
                        const struct coll__turns *turns);

#endif
