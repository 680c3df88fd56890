/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_fleet.h - the hosts that node 0 reaches by agents: those of --hosts and
 * --hostfile, and those that the script of --host-discovery-script names.
 *
 * This host is node 0.  Each other host has a seat (collrun_nodes.h) and an agent.  A
 * host that the script names later gets a seat then.
 */
#ifndef COLL_TOOLS_COLLRUN_FLEET_H
#define COLL_TOOLS_COLLRUN_FLEET_H

#include <poll.h>
#include <sys/types.h>

struct fleet;
struct nodes;
struct options;

/* Find the hosts.
 *
 * Result:    0, or the exit status after an error message.  The fleet is of the nodes
 *            that meet by fleet_options().
 */
int fleet_plan(const struct options *options, const char *run_id,
               struct fleet **fleet);

/* Return the options of node 0. */
const struct options *fleet_options(const struct fleet *fleet);

/* Start an agent for each seat: 0, or -1 after an error message. */
int fleet_start(struct nodes *nodes);

/* While the nodes meet: has an agent ended whose node has not come?  That is said. */
int fleet_has_failed(struct nodes *nodes);

/* Fill in the descriptors to poll; returns their number, 2 n_nodes + 1 at most. */
int fleet_fds(const struct nodes *nodes, struct pollfd *fds);

/* Pass on what other hosts print. */
void fleet_pump(struct nodes *nodes);

/* Ask the script if it is time; start agents for new hosts. */
void fleet_look(struct nodes *nodes);

/* Return when fleet_look() has something to do (s), or 0. */
double fleet_next(const struct nodes *nodes);

/* A child of this collrun has ended. */
void fleet_take_end(struct nodes *nodes, pid_t pid, int how);

void fleet_close(struct nodes *nodes);

#endif
