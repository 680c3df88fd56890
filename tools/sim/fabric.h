/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.h - a machine that may not be this one: hosts with seats for ranks,
 * and the network between them, as links with prices and routes over them.
 *
 * It is read from a text file (tests/topo/README explains its words) or from a
 * host's hwloc XML.  The inside of a host is a small graph; large networks are
 * made by rule (fat tree, dragonfly, torus), and a route is computed, not
 * stored.  Links have a direction: a cable is two links.
 */
#ifndef COLL_TOOLS_SIM_FABRIC_H
#define COLL_TOOLS_SIM_FABRIC_H

#include <stddef.h>

struct coll__fabric;

#define COLL__ROUTE_MAX 96

/* One direction of a link, perhaps of several cables side by side: a message
 * of n bytes alone passes it in latency + n beta; k messages of n bytes each
 * that pass at the same time need n max(beta, k share).  For a single cable,
 * share == beta. */
struct coll__fabric_link {
    double latency, beta, share; /* s, s a byte, s a byte */
};

/* How ranks take their seats. */
enum coll__placement {
    PLACE_BLOCK, /* host after host, each filled */
    PLACE_CYCLIC /* one to each host in turn */
};

/* Read a file.
 *
 * Ownership: the caller ends *fabric by coll__fabric_destroy().
 * Errors:    COLL_ERR_INVALID (names file, line and field), COLL_ERR_SYSTEM,
 *            COLL_ERR_NOMEM, logged.
 * Threads:   a fabric never changes; any number may read it.
 */
int coll__fabric_load(const char *path, struct coll__fabric **fabric);
void coll__fabric_destroy(struct coll__fabric *fabric);

const char *coll__fabric_name(const struct coll__fabric *fabric);
int coll__fabric_n_hosts(const struct coll__fabric *fabric);
int coll__fabric_n_seats(const struct coll__fabric *fabric);
int coll__fabric_n_links(const struct coll__fabric *fabric);

/* Return the host of a seat; its seats are numbered one after another. */
int coll__fabric_host(const struct coll__fabric *fabric, int seat);

/* Return a link's price; write its name, such as "host 3: gpu0 to pcie0". */
struct coll__fabric_link coll__fabric_link(const struct coll__fabric *fabric,
                                           int link);
#define COLL__LINK_NAME 96
void coll__fabric_link_name(const struct coll__fabric *fabric, int link,
                            char name[COLL__LINK_NAME]);

/* Return the costs of software: the overhead of a message (s), the gap between two
 * messages of a rank (s), and the work on memory (s a byte). */
double coll__fabric_overhead(const struct coll__fabric *fabric);
double coll__fabric_gap(const struct coll__fabric *fabric);
double coll__fabric_gamma(const struct coll__fabric *fabric);

/* Seat nranks ranks: seat[nranks], all different.  COLL_OK, or
 * COLL_ERR_INVALID (logged) when there are fewer seats. */
int coll__fabric_seats(const struct coll__fabric *fabric, int nranks,
                       enum coll__placement placement, int *seat);

/* Find the links from seat to seat, in order: links[COLL__ROUTE_MAX], and their number.
 * The first is the sender's way out, the last the receiver's way in, each used by that
 * seat alone; 0 links for a seat to itself. */
int coll__fabric_route(const struct coll__fabric *fabric, int from, int to,
                       int *links);

/* Find the levels of the machine from the inside out, as coll__view has them:
 * color[level][rank] for each level below the last; prices[level] for all.
 *
 * Shapes:    seat[nranks], all different.
 * Result:    prices of messages between neighbouring groups, with the load of
 *            one whole group on its way out; alpha is a mean over the
 *            distances 1, 2, 4, ...  Levels that change nothing are left out.
 * Ownership: the caller ends *levels by coll__fabric_levels_fini().
 * Errors:    COLL_ERR_INVALID (seats), COLL_ERR_NOMEM, logged.
 * Cost:      linear in nranks.
 */
#define COLL__FABRIC_LEVELS 6
struct coll__fabric_price {
    char name[16];
    double alpha, beta, share, gap, spread; /* as in lib/plan/view.h */
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

/* Make a ring through all ranks along the links: ring[nranks] is the rank at each
 * place.  Host after host, each entered and left once, near an active NIC;
 * inside a host the time of the slowest link, with its load, is minimized
 * (exactly for up to 10 ranks in a host, else by improvement).
 *
 * Errors:    COLL_ERR_INVALID (seats), COLL_ERR_NOMEM, logged.
 */
int coll__fabric_ring(const struct coll__fabric *fabric, int nranks,
                      const int *seat, int *ring);

/* Return the rank among `ranks` whose seat is nearest to an active NIC (the lowest of
 * equals): a good root for a tree within a host. */
int coll__fabric_root(const struct coll__fabric *fabric, const int *seat,
                      const int *ranks, int n);

/* Return the NIC of a seat, and its name; -1 and "" when it can reach none. */
int coll__fabric_nic(const struct coll__fabric *fabric, int seat,
                     const char **name);

#endif
