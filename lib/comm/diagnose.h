/* SPDX-License-Identifier: BSD-3-Clause */
/* diagnose.h - COLL_DIAGNOSE: test the links of a new communicator. */
#ifndef COLL_LIB_COMM_DIAGNOSE_H
#define COLL_LIB_COMM_DIAGNOSE_H

struct coll_comm;

/* Measure the links between hosts, then those between the ranks of each host, and have rank
 * 0 print those that are much slower than the others of their level.  Collective.
 *
 * Errors:    those of coll__comm_measure(), COLL_ERR_NOMEM, logged.
 * Cost:      at most 32 measurements of a rank in each of the two parts, and at most 32 of
 *            links that seem slow, one after another.
 */
int coll__comm_diagnose(struct coll_comm *comm);

/* Return whom a player meets in a round of a tournament of n players, or -1: nobody.  In
 * coll__tournament_rounds(n) rounds, from 0 on, each player meets each other one once. */
int coll__tournament_partner(int n, int player, int round);
int coll__tournament_rounds(int n);

#endif
