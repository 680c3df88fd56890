/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.h - a machine that may not be this one: hosts with seats for ranks,
 * and the network between them, as links with prices and routes over them.
 *
 * It is read from a text file (tests/topo/README names its words) or from a
 * host's hwloc XML.  Small machines list their links one by one; large networks
 * are made by rule (fat tree, dragonfly, torus), and a route is computed, not
 * stored.  Links have a direction: a cable is two links.
 */
#ifndef COLL_LIB_TOPO_FABRIC_H
#define COLL_LIB_TOPO_FABRIC_H

#include <stddef.h>

struct coll__fabric;

#define COLL__ROUTE_MAX 32

/* One direction of a link: n bytes pass it in latency + n beta, and messages
 * that pass it at the same time share 1 / beta. */
struct coll__fabric_link {
    char name[48];
    double latency, beta; /* s, s a byte */
};

/* How ranks take their seats. */
enum coll__placement {
    PLACE_BLOCK, /* host after host, each filled */
    PLACE_CYCLIC /* one to each host in turn */
};

/* Read a file.
 *
 * Ownership: *fabric is the caller's, to end by coll__fabric_destroy().
 * Errors:    COLL_ERR_INVALID (names file, line and field), COLL_ERR_SYSTEM,
 *            COLL_ERR_NOMEM, logged.
 */
int coll__fabric_load(const char *path, struct coll__fabric **fabric);
void coll__fabric_destroy(struct coll__fabric *fabric);

const char *coll__fabric_name(const struct coll__fabric *fabric);
int coll__fabric_n_seats(const struct coll__fabric *fabric);
int coll__fabric_n_links(const struct coll__fabric *fabric);
const struct coll__fabric_link *
coll__fabric_link(const struct coll__fabric *fabric, int link);

/* What software adds to each message (s), the pause between two messages that
 * a rank sends (s), and the work on memory (s a byte). */
double coll__fabric_overhead(const struct coll__fabric *fabric);
double coll__fabric_gap(const struct coll__fabric *fabric);
double coll__fabric_gamma(const struct coll__fabric *fabric);

/* Seat nranks ranks: seat[nranks].  COLL_OK, or COLL_ERR_INVALID (logged) when
 * there are fewer seats. */
int coll__fabric_seats(const struct coll__fabric *fabric, int nranks,
                       enum coll__placement placement, int *seat);

/* The links from seat to seat, in order: links[COLL__ROUTE_MAX], and their
 * number.  The first is the sender's way out, the last the receiver's way in,
 * each used by that seat alone; 0 links for a seat to itself. */
int coll__fabric_route(const struct coll__fabric *fabric, int from, int to,
                       int *links);

/* The levels of the machine from the inside out, as coll__view has them:
 * color[level][rank] for each level below the last; prices[level] for all. */
#define COLL__FABRIC_LEVELS 6
struct coll__fabric_price {
    char name[16];
    double alpha, beta, share, gap; /* as in lib/plan/view.h */
};
struct coll__fabric_levels {
    int n_levels;
    int *color[COLL__FABRIC_LEVELS]; /* [nranks] each; NULL for the last */
    struct coll__fabric_price prices[COLL__FABRIC_LEVELS];
};
int coll__fabric_levels_init(const struct coll__fabric *fabric, int nranks,
                             const int *seat,
                             struct coll__fabric_levels *levels);
void coll__fabric_levels_fini(struct coll__fabric_levels *levels);

#endif
