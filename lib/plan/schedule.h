/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - plans for ranks that do one thing after the other, as streams do, with
 * room for few messages between two of them.
 *
 * A builder lists steps as they are thought of: as listed, a plan may need room
 * for a hundred messages.  Here its steps are put into the order of a run of all
 * ranks that has less.  What a rank does in such a run are its turns: the next
 * message to, or from, which rank.
 */
#ifndef COLL_LIB_PLAN_SCHEDULE_H
#define COLL_LIB_PLAN_SCHEDULE_H

#include "lib/plan/plan.h"

/* What there is between two ranks, each way. */
struct coll__room {
    int n_slots; /* messages under way from one rank to another, at most */
    size_t slot; /* bytes of the longest; a multiple of 64 */
};

/* Cut messages that are longer than slot bytes, and link the plan again.  Both
 * ends of a message are cut alike.  COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__plan_fit(struct coll__plan *plan, size_t slot);

struct coll__turns {
    int *lanes; /* [n]: 2 * peer, + 1 for a receive; COLL__JOINED as below */
    int n, n_slots;
};

/* Added to a receive's turn: the next one is that of a send of what it leaves, and
 * they are one: neither message goes on before both can.  So the rank may pass on
 * what it takes, as it takes it (plan.h: is_joined). */
#define COLL__JOINED (1 << 30)

/* Run all ranks' linked plans, each rank a message a round, with n_slots messages
 * between two ranks at most; what `rank` does.
 *
 * A receive and the send that passes on what it leaves are one turn, unless the
 * ranks would get stuck so: then those that hold them up are two.
 *
 * Result:    the same on every rank that asks.  Sends go before receives, and in
 *            both first what could go on first.
 * Ownership: *turns is the caller's, to end by free(turns->lanes).
 * Errors:    COLL_ERR_INVALID (no order would do), COLL_ERR_NOMEM; logged.
 * Cost:      O(n + r p) for n steps of all p ranks, in r rounds; p squared more each
 *            time that joined steps have to be parted.
 */
int coll__plans_turns(const struct coll__plan *plans, int nranks, int n_slots,
                      int rank, struct coll__turns *turns);

/* The same for plans in which no send waits for a receive, of which a rank knows
 * its own alone: the distance of the ranks and the message's number between them
 * tell both ends when its turn is. */
int coll__plan_turns_alone(const struct coll__plan *plan, int nranks,
                           int n_slots, int rank, struct coll__turns *turns);

/* Put the steps of a linked plan into the order of its messages' turns, and link
 * it again.  Local steps go where the rank would wait else, but before what needs
 * them.
 *
 * Errors:    COLL_ERR_INVALID (a message's turn is before that of another which it
 *            waits for, or they are not the plan's messages), COLL_ERR_NOMEM;
 *            logged; the plan is as it was.
 */
int coll__plan_in_turns(struct coll__plan *plan,
                        const struct coll__turns *turns);

#endif
