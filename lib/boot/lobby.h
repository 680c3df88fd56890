/* SPDX-License-Identifier: BSD-3-Clause */
/* lobby.h - ask collrun for newcomers: the processes that it has started in place of dead
 * ranks, or on new hosts, and that wait to be ranks.
 *
 * collrun (on several hosts that of node 0) listens at the address in COLLRUN_LOBBY, and a
 * process proves COLL_JOB_SECRET there.  A newcomer has COLLRUN_NEWCOMER, its number among
 * the newcomers of the job, in place of COLL_RANK, COLL_SIZE and COLL_ROOT.  Words
 * (lib/net/words.h):
 *
 *   join NUMBER           from a newcomer, which then waits
 *   seat RANK SIZE ID     the answer, whenever the time has come: be this rank of the
 *                         group that this unique id names; the newcomer stays connected
 *                         until the group is there
 *   count                 from a rank
 *   waiting N             the answer: so many newcomers wait
 *   grow N FIRST SIZE ID  from a rank: give N newcomers seats, from rank FIRST on
 *   ok | waiting N        the answer: they have got them; or fewer than that wait
 *   gone RANK             to the rank that gave the seats, while it stays connected: the
 *                         newcomer with this seat is connected no longer
 *
 * So the ranks learn at once if a newcomer dies before it has come to them.
 */
#ifndef COLL_LIB_BOOT_LOBBY_H
#define COLL_LIB_BOOT_LOBBY_H

#include "include/coll/coll.h"

struct coll__words;

/* Count the newcomers that wait; 0 if the launcher has no lobby.
 *
 * Errors:    COLL_ERR_BOOTSTRAP, logged: the launcher does not answer within `timeout`
 *            seconds.
 */
int coll__lobby_count(double timeout, int *n);

/* Have n newcomers join the group of this id, as ranks `first` to first + n - 1.
 *
 * Ownership: *launcher is a connection for coll__lobby_gone(), which the caller closes
 *            when the group is there.  On an error it is closed.
 * Errors:    COLL_ERR_BOOTSTRAP, logged: fewer newcomers wait, the launcher has no lobby,
 *            or it does not answer.
 */
int coll__lobby_grow(const struct coll_unique_id *id, int first, int n,
                     double timeout, struct coll__words *launcher);

/* Go on to the next of these newcomers that has left the launcher.  One that has joined
 * leaves it, too.
 *
 * Result:    1, with the rank that it was to be; 0: no other one so far, or launcher is
 *            closed.
 * Cost:      one system call.
 */
int coll__lobby_gone(struct coll__words *launcher, int *rank);

#endif
