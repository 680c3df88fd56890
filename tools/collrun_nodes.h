/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_nodes.h - a job of which one collrun was started on each host.
 *
 * The collruns meet at an endpoint that all were told.  The first to listen there is
 * node 0, and the others are nodes in the order in which they come, unless --node-rank
 * says which.  Connections stay open for as long as the job: node 0 says when to start
 * the ranks, each says when one of its own has failed, and when all have ended, and
 * node 0 has the last word: the job's status, or to start again.
 *
 * Words (collrun_link.h):
 *   node RANK NODES N        to node 0: who comes (RANK -1: as it comes), with N ranks
 *   seat | no REASON         the answer
 *   go ...                   of node 0: struct order, start the ranks
 *   fail STATUS SIGNAL AGAIN either way: end the ranks; by this signal, if not 0; and
 *                            if AGAIN, they may be started again
 *   done STATUS              to node 0: all ranks have ended
 *   end STATUS               of node 0: with which status each collrun exits
 */
#ifndef COLL_TOOLS_COLLRUN_NODES_H
#define COLL_TOOLS_COLLRUN_NODES_H

#include "tools/collrun_link.h"

#include <poll.h>

struct options;

/* What a node is told to start. */
struct order {
    int node, first, size; /* its number, its first rank, all ranks */
    int root_port, master_port;
    int n_restarts, max_restarts;
    char secret[65]; /* the ranks' */
};

/* The other end of a link. */
struct seat {
    struct link link;
    char where[64]; /* it is at */
    int n;          /* its ranks */
    int is_done;    /* its ranks have ended; 1 where there is none */
};

struct nodes {
    int n_nodes, n; /* this node's ranks */
    char host[256]; /* the endpoint, as this node was told it */
    int port;
    unsigned char key[LINK_KEY];
    int listen_fd;      /* node 0's */
    struct seat *seats; /* [n_nodes]; of the others only node 0's is used */
    struct order order;
    /* what has been decided: 0 nothing, 1 to end with this status, 2 to go on with
     * `order` */
    int decision, status;
};

enum { NODES_UNDECIDED, NODES_END, NODES_AGAIN };

/* What another node says that the job has to act on. */
struct nodes_news {
    int node; /* whose it is */
    const char *where;
    int status, signal, may_restart;
};

/* Meet the other nodes.
 *
 * Result:    0, and *nodes is the caller's, to close; or the exit status, and why
 *            has been said.
 */
int nodes_meet(const struct options *options, const char *run_id,
               struct nodes **nodes);
void nodes_close(struct nodes *nodes);

/* Listen where the endpoint is, at a port that the kernel chooses for 0; -1: errno
 * says why not. */
int nodes_listen(const struct nodes *nodes, int port);

/* Tell who has come too late, once the job has all its nodes. */
void nodes_turn_away(int fd);

/* Read a "go": 0, or -1 when it is none. */
int nodes_read_order(const char *word, struct order *order);

/* node 0: have all start their ranks by `order`, each with its own number. */
void nodes_go(struct nodes *nodes);

/* Fill in what to poll; how many, n_nodes at most. */
int nodes_fds(const struct nodes *nodes, struct pollfd *fds);

/* Read what has come: 1 there is news for the job, 0 nothing more. */
int nodes_hear(struct nodes *nodes, struct nodes_news *news);

/* Tell all others that the ranks here end, and why. */
void nodes_fail(struct nodes *nodes, int status, int signal, int may_restart);

/* The ranks here have ended. */
void nodes_done(struct nodes *nodes, int status);

/* node 0: have all others' ranks ended? */
int nodes_all_done(const struct nodes *nodes);

/* node 0: the last word. */
void nodes_end(struct nodes *nodes, int status);

#endif
