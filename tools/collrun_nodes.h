/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_nodes.h - a job with a collrun on each host, a node.  The user has started all
 * of them, or the first has started the others (collrun_fleet.h).
 *
 * The collruns meet at an endpoint given to all of them.  The first to listen there is
 * node 0.  The others are numbered in the order in which they connect, unless
 * --node-rank gives a number.  Connections stay open as long as the job.  Node 0 says
 * when to start the ranks.  Each node reports when one of its ranks has failed, and when
 * all have ended.  Node 0 decides at the end: the job's status, or a restart.
 *
 * With --min-np, node 0 also decides who takes the place of a dead rank, and a node that
 * fails or is gone is done without.
 *
 * Words (collrun_link.h):
 *   node RANK NODES N        to node 0: node RANK (-1: any number) comes with N ranks
 *   seat | no REASON         the answer
 *   go ...                   from node 0: struct order, start the ranks
 *   fail STATUS SIGNAL AGAIN either way: end the ranks; by this signal, if not 0; and
 *                            if AGAIN, they may be started again
 *   ended FIRST N HOW        either way: N ranks, from FIRST on, have ended (waitpid()),
 *                            and nothing that they have started is left; node 0 tells of
 *                            rank 0 only, as no others are waited for
 *   left PLACE HOW           to node 0, with --min-np: the process in this place has ended
 *   start PLACE NEWCOMER RESTART  from node 0: start this newcomer there
 *   done STATUS              to node 0: all ranks have ended
 *   end STATUS               from node 0: the exit status of each collrun
 */
#ifndef COLL_TOOLS_COLLRUN_NODES_H
#define COLL_TOOLS_COLLRUN_NODES_H

#include "tools/collrun_job.h"
#include "tools/collrun_link.h"

#include <poll.h>

/* What a node is told to start. */
struct order {
    /* its number, and that of the nodes; its first rank, and the number of all ranks.
     * From rank `size` on, there are places for newcomers alone. */
    int node, n_nodes, first, size;
    int root_port, master_port;
    int lobby_port; /* 0: there is no lobby */
    int n_restarts, max_restarts, min_np;
    char secret[65]; /* the ranks' */
};

/* The other end of a link. */
struct seat {
    struct coll__words link;
    char where[64]; /* its address */
    int first, n;   /* its ranks */
    int is_done;    /* its ranks have ended; 1 for an empty seat */
    int is_gone;    /* its node was lost, or could not be started */
    int has_come, is_new; /* is_new: the job does not know of it yet */
    int is_unlisted;      /* nothing more is to be started there */
    char *host;           /* with a fleet, the host's name; malloc()ed */
    struct agent *agent;  /* what started the collrun there, or NULL */
};

struct nodes {
    int n_nodes, n; /* n: this node's ranks */
    int n_places;   /* of all nodes that have come; 0 while they meet */
    char host[256]; /* the endpoint, as given to this node */
    int port;
    unsigned char key[COLL__SECRET_BYTES];
    int listen_fd;               /* node 0's */
    struct reception *reception; /* node 0's, while nodes may come */
    struct fleet *fleet; /* node 0's, if it reaches the hosts by agents */
    /* [n_nodes]; nodes other than 0 use only node 0's, whose own has no link */
    struct seat *seats;
    struct order order;
    /* NODES_UNDECIDED; NODES_END: end with this status; NODES_AGAIN: start again by
     * `order` */
    int decision, status;
    int is_told; /* the other nodes know that the ranks here end */
};

enum { NODES_UNDECIDED, NODES_END, NODES_AGAIN };

/* News from another node that the job must act on. */
struct nodes_news {
    enum { NEWS_FAIL, NEWS_ENDED, NEWS_LEFT, NEWS_START, NEWS_JOIN } what;
    int node; /* whose it is */
    const char *where;
    int status, signal, may_restart; /* NEWS_FAIL; it may be gone */
    /* NEWS_ENDED, NEWS_LEFT: these ranks, and how (waitpid()'s status); NEWS_JOIN: n
     * places from `first` on have come; NEWS_START: the place `first` */
    int first, n, how;
    struct due due; /* NEWS_START: who is to take the place */
};

/* Meet the other nodes.
 *
 * Result:    0, and the caller closes *nodes; or the exit status after an error
 *            message.
 */
int nodes_meet(const struct options *options, const char *run_id,
               struct nodes **nodes);
void nodes_close(struct nodes *nodes);

/* Return how long nodes wait for each other (s). */
double nodes_patience(void);

/* Read a "go": 0, or -1 when it is none. */
int nodes_read_order(const char *word, struct order *order);

/* node 0: tell a node to start its ranks by `order`, with its own number. */
void nodes_go(struct nodes *nodes, int node);

/* Return how many descriptors nodes_fds() fills in at most. */
int nodes_most_fds(const struct nodes *nodes);

/* Fill in the descriptors to poll; returns their number. */
int nodes_fds(const struct nodes *nodes, struct pollfd *fds);

/* Read received words: 1 there is news for the job; 0 nothing more. */
int nodes_hear(struct nodes *nodes, struct nodes_news *news);

/* Return when nodes_hear() has something to do even if nothing comes (s), or 0. */
double nodes_next(const struct nodes *nodes);

/* A child of this collrun has ended: it may be an agent. */
void nodes_take_end(struct nodes *nodes, pid_t pid, int how);

/* Tell all other nodes that the ranks here end, and why. */
void nodes_fail(struct nodes *nodes, int status, int signal, int may_restart);

/* Tell that n ranks here, from `first` on, have ended; how: waitpid()'s status. */
void nodes_ended(struct nodes *nodes, int first, int n, int how);

/* Tell node 0 that the process in this place has ended. */
void nodes_left(struct nodes *nodes, int place, int how);

/* Node 0: have a newcomer started in this place of that node. */
void nodes_start(struct nodes *nodes, int node, int place,
                 const struct due *due);

/* The ranks here have ended. */
void nodes_done(struct nodes *nodes, int status);

/* node 0: have the ranks of all other nodes ended? */
int nodes_all_done(const struct nodes *nodes);

/* node 0: the last word. */
void nodes_end(struct nodes *nodes, int status);

#endif
