/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_int.h - what the files of a fabric share: graphs of parts, kinds of
 * hosts, and the network's rule.
 */
#ifndef COLL_TOOLS_SIM_FABRIC_INT_H
#define COLL_TOOLS_SIM_FABRIC_INT_H

#include "tools/sim/fabric.h"

#define FABRIC_MAX_SEATS (1 << 20)
#define FABRIC_MAX_LINKS (1 << 26)
#define FABRIC_MAX_PARTS 4096 /* in a host */
#define FABRIC_MAX_EDGES 16384
#define FABRIC_MAX_INNER 512 /* parts with more than one link */
#define FABRIC_MAX_PATH 28 /* edges of a path within a graph */
#define FABRIC_MAX_RUNS 4096 /* lines of hosts */
#define FABRIC_MAX_TREE 8    /* levels of a fat tree */
#define FABRIC_NAME 32

/* ---- a graph of parts ---------------------------------------------------- */

enum graph_kind {
    GRAPH_CACHE, /* from the inside out, as levels go */
    GRAPH_SWITCH,
    GRAPH_NUMA,
    GRAPH_SOCKET,
    GRAPH_SEAT,
    GRAPH_NIC
};

struct graph_part {
    char name[FABRIC_NAME];
    enum graph_kind kind;
    int within;           /* the part that holds it, -1 none */
    double latency, beta; /* a seat's own port; beta of a NIC's cable */
    int is_down;          /* a NIC's port */
    int number;           /* among the seats, or among the NICs */
    int n_edges, edge;    /* its links, and one of them */
    int inner;            /* row of via; -1: it has only one link */
};

/* A link in both directions; with beta 0 it costs nothing and is not numbered. */
struct graph_edge {
    int a, b;
    double latency, beta, share;
};

/* Invariant: once finished, via[inner a][inner b] is the link (2 edge + way, 1
 * from b to a) by which the best path from a enters b; -1 for none. */
struct graph {
    char name[FABRIC_NAME];
    struct graph_part *parts;
    struct graph_edge *edges;
    int n_parts, cap_parts, n_edges, cap_edges;
    int *seats, *nics; /* their parts */
    int n_seats, n_nics, n_inner;
    int *inner; /* [n_inner]: the part of each row */
    int *via;
    int *nic; /* [n_seats]: the NIC (its number) that serves it, -1 none */
};

/* Add a part or an edge; returns its number, or -1 without memory. */
int coll__graph_part(struct graph *graph, const struct graph_part *part);
int coll__graph_edge(struct graph *graph, const struct graph_edge *edge);

/* Number seats and NICs and find all paths.
 * COLL_OK, COLL_ERR_NOMEM, or COLL_ERR_INVALID: too many inner parts, or a
 * path that is too long (neither is logged). */
int coll__graph_finish(struct graph *graph);
void coll__graph_fini(struct graph *graph);

/* Find the links of the best path between two parts, links[FABRIC_MAX_PATH]; their
 * number, or -1 when there is no path.  Best: fewest links, then the widest, then the
 * quickest; never through a seat or NIC. */
int coll__graph_path(const struct graph *graph, int from, int to, int *links);

/* Does every seat reach every other seat?  If not, set two parts that do not. */
int coll__graph_is_joined(const struct graph *graph, int *a, int *b);

/* A link of a path, in its own direction. */
static inline int coll__edge_from(const struct graph *graph, int link)
{
    const struct graph_edge *edge = &graph->edges[link / 2];

    return link & 1 ? edge->b : edge->a;
}

/* ---- the network --------------------------------------------------------- */

enum net_kind {
    NET_NONE,
    NET_SWITCH,
    NET_FAT_TREE,
    NET_DRAGONFLY,
    NET_TORUS,
    NET_LINKS
};

/* The hosts whose NICs (all, or one number) are attached to a switch. */
struct attach {
    int first, last, nic, part; /* nic -1: all of them */
};

struct net {
    enum net_kind kind;
    double latency, beta; /* of each cable */
    int n_links;

    /* fat tree: switches of level l have down[l] below them, and up[l] cables
     * to the level above in all; the last level has none */
    int n_levels, is_rails, n_rails;
    int down[FABRIC_MAX_TREE], up[FABRIC_MAX_TREE];
    int n_groups[FABRIC_MAX_TREE], first[FABRIC_MAX_TREE];

    /* dragonfly */
    int groups, routers, hosts, globals;     /* per group, router, router */
    int n_between;                           /* cables between two groups */
    double global_latency, global_beta;

    int dims[3]; /* torus */

    struct graph graph; /* links: of switches */
    struct attach *attachs;
    int n_attachs;
    int *attach; /* [NICs of all hosts]: the switch of each, -1 none */
};

/* ---- the whole ----------------------------------------------------------- */

/* Hosts of one kind in a row. */
struct run {
    int kind, n_hosts;
    int first_host, first_seat, first_nic, first_link;
};

struct coll__fabric {
    char name[64];
    double overhead, gap, gamma;
    struct graph *kinds;
    int n_kinds;
    struct run *runs;
    int n_runs, n_hosts, n_seats, n_nics, n_links, net_link;
    struct net net;
};

/* Where a host or seat is. */
struct fabric_place {
    const struct run *run;
    const struct graph *kind;
    int host, local; /* its host; the seat's number there */
};
struct fabric_place coll__fabric_place(const struct coll__fabric *fabric,
                                       int seat);

/* List the ranks in order of their seats: sorted[nranks].  COLL_ERR_INVALID
 * (logged) if a seat does not exist or is taken twice, COLL_ERR_NOMEM (logged). */
int coll__fabric_sort(const struct coll__fabric *fabric, int nranks,
                      const int *seat, int *sorted);

/* A host's first link and NIC. */
static inline int coll__host_link(const struct fabric_place *at)
{
    const struct graph *kind = at->kind;

    return at->run->first_link +
           (at->host - at->run->first_host) *
               2 * (kind->n_seats + kind->n_nics + kind->n_edges);
}

static inline int coll__host_nic(const struct fabric_place *at)
{
    return at->run->first_nic +
           (at->host - at->run->first_host) * at->kind->n_nics;
}

/* Read a text, or an hwloc XML file, into a fabric that is all zeros.  Errors name
 * `path`.  The fabric's counts are not filled in. */
int coll__fabric_parse(struct coll__fabric *fabric, const char *path,
                       char *text, size_t len);
int coll__fabric_of_hwloc(struct coll__fabric *fabric, const char *path);

/* Check the network's figures against the number of hosts and count its links; NULL, or
 * a text with the error and the remedy. */
const char *coll__net_finish(struct net *net, const struct coll__fabric *fabric,
                             char *why, size_t len);

/* As coll__net_finish(), for a network of links; also record the attached hosts. */
const char *coll__attach_finish(struct net *net,
                                const struct coll__fabric *fabric, char *why,
                                size_t len);

/* The network's links from one NIC (its number of all, and of its host) to
 * another: appended to links[n ..]; the new number, -1 for no path. */
struct net_end {
    int nic, host, local;
};
int coll__net_route(const struct net *net, const struct net_end *from,
                    const struct net_end *to, int *links, int n);
struct coll__fabric_link coll__net_link(const struct net *net, int link);
void coll__net_link_name(const struct net *net, int link,
                         char name[COLL__LINK_NAME]);

/* Return the network's group of a host on a level from the inside out, 0 ..
 * coll__net_n_levels() - 1; and that level's name. */
int coll__net_n_levels(const struct net *net);
const char *coll__net_level_name(const struct net *net, int level);
int coll__net_group(const struct net *net, int level,
                    const struct net_end *end);

/* ---- order --------------------------------------------------------------- */

/* For each seat of a finished graph the nearest active NIC (its number, -1
 * none): fewest links, then quickest; equals are shared out evenly. */
void coll__order_nic(const struct graph *graph, int *nic);

/* The distance from a seat to the network through its NIC; and which of two seats is
 * nearer: < 0 a, 0 equal. */
struct coll__seat_reach {
    int n_links; /* -1: it has no NIC */
    double latency, beta;
};
struct coll__seat_reach coll__order_reach(const struct graph *graph, int seat);
int coll__order_compare(const struct coll__seat_reach *a,
                        const struct coll__seat_reach *b);

/* Return which of n seats is nearest to an active NIC: its place in seats[]. */
int coll__order_root(const struct graph *graph, const int *seats, int n);

/* Order n seats as a ring, or with is_open as a path from the network through all seats
 * and back.  seats[n] is reordered so that the slowest link, with its load, takes the
 * least time.  COLL_OK or COLL_ERR_NOMEM, not logged. */
int coll__order_ring(const struct graph *graph, int is_open, int *seats,
                     int n);

#endif
