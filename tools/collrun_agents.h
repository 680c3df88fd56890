/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_agents.h - start a collrun on another host by ssh, or by another agent.
 *
 * What the collrun there prints passes through this one.  The two talk over a connection
 * of their own (collrun_nodes.h), so that an agent may end at any time.
 */
#ifndef COLL_TOOLS_COLLRUN_AGENTS_H
#define COLL_TOOLS_COLLRUN_AGENTS_H

#include <poll.h>
#include <sys/types.h>

struct options;
struct agent;

/* What to start where. */
struct errand {
    const struct options *options;
    const char *host;
    int node, n; /* the node's number, and its ranks */
    int port;    /* where this collrun listens */
    const char *run_id;
};

/* Give the job a secret if it has none: 0, or -1 after an error message. */
int agents_draw_secret(void);

/* Return the address of this host by which that host can reach it, or this host's name. */
const char *agents_address_for(const char *host);

/* Does this name mean this host? */
int agents_is_here(const char *host);

/* Start an agent; NULL after an error message. */
struct agent *agent_start(const struct errand *errand);

/* Fill in the two descriptors to poll. */
void agent_fds(const struct agent *agent, struct pollfd *fds);

/* Pass on what has been printed there; -1 if our own output is closed, else 0. */
int agent_pump(struct agent *agent);

/* A child has ended: 1 if it is this agent. */
int agent_take_end(struct agent *agent, pid_t pid, int how);

/* Has it ended?  Then *how is waitpid()'s status. */
int agent_has_ended(const struct agent *agent, int *how);

/* End an agent, after its last output, for which it has until `deadline` (s, of
 * CLOCK_MONOTONIC).  NULL: does nothing. */
void agent_close(struct agent *agent, double deadline);

#endif
