/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_seats.c - the places of seats, the seats of ranks, and links by number. */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

struct fabric_place coll__fabric_place(const struct coll__fabric *fabric,
                                       int seat)
{
    int low = 0, high = fabric->n_runs - 1;
    struct fabric_place at;

    while (low < high) { /* the last run that begins at or before the seat */
        int middle = (low + high + 1) / 2;

        if (fabric->runs[middle].first_seat <= seat)
            low = middle;
        else
            high = middle - 1;
    }
    at.run = &fabric->runs[low];
    at.kind = &fabric->kinds[at.run->kind];
    seat -= at.run->first_seat;
    at.host = at.run->first_host + seat / at.kind->n_seats;
    at.local = seat % at.kind->n_seats;
    return at;
}

/* ---- seats --------------------------------------------------------------- */

/* Take seats in rounds: in each round one seat of each host that has one left. */
static void seat_cyclic(const struct coll__fabric *fabric, int nranks,
                        int *seat)
{
    int rank = 0;

    for (int round = 0; rank < nranks; round++)
        for (int i = 0; i < fabric->n_runs; i++) {
            const struct run *run = &fabric->runs[i];
            int n_seats = fabric->kinds[run->kind].n_seats;

            for (int h = 0;
                 h < run->n_hosts && round < n_seats && rank < nranks; h++)
                seat[rank++] = run->first_seat + h * n_seats + round;
        }
}

int coll__fabric_seats(const struct coll__fabric *fabric, int nranks,
                       enum coll__placement placement, int *seat)
{
    if (nranks < 1 || nranks > fabric->n_seats) {
        log_error("topo",
                  "%d ranks on the fabric %s, which has %d seats; ask for 1 to "
                  "%d ranks",
                  nranks, fabric->name, fabric->n_seats, fabric->n_seats);
        return COLL_ERR_INVALID;
    }
    if (placement == PLACE_CYCLIC)
        seat_cyclic(fabric, nranks, seat);
    else
        for (int r = 0; r < nranks; r++)
            seat[r] = r;
    return COLL_OK;
}

int coll__fabric_sort(const struct coll__fabric *fabric, int nranks,
                      const int *seat, int *sorted)
{
    int *rank = malloc((size_t)fabric->n_seats * sizeof(int)), n = 0;

    if (!rank) {
        log_error("topo", "no memory left for %d seats; free some memory",
                  fabric->n_seats);
        return COLL_ERR_NOMEM;
    }
    for (int s = 0; s < fabric->n_seats; s++)
        rank[s] = -1;
    for (int r = 0; r < nranks; r++) {
        if (seat[r] < 0 || seat[r] >= fabric->n_seats || rank[seat[r]] >= 0) {
            log_error("topo",
                      "rank %d in seat %d of %d, which is not there or "
                      "taken; give each rank its own",
                      r, seat[r], fabric->n_seats);
            free(rank);
            return COLL_ERR_INVALID;
        }
        rank[seat[r]] = r;
    }
    for (int s = 0; s < fabric->n_seats; s++)
        if (rank[s] >= 0)
            sorted[n++] = rank[s];
    free(rank);
    return COLL_OK;
}

/* ---- links --------------------------------------------------------------- */

/* Find the host of a link, and the link's number within the host. */
static int find_link(const struct coll__fabric *fabric, int link,
                     struct fabric_place *at)
{
    int low = 0, high = fabric->n_runs - 1, per_host;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (fabric->runs[middle].first_link <= link)
            low = middle;
        else
            high = middle - 1;
    }
    at->run = &fabric->runs[low];
    at->kind = &fabric->kinds[at->run->kind];
    per_host = 2 * (at->kind->n_seats + at->kind->n_nics + at->kind->n_edges);
    link -= at->run->first_link;
    at->host = at->run->first_host + link / per_host;
    return link % per_host;
}

struct coll__fabric_link coll__fabric_link(const struct coll__fabric *fabric,
                                           int link)
{
    struct fabric_place at;
    const struct graph_part *part;
    const struct graph_edge *edge;

    if (link >= fabric->net_link)
        return coll__net_link(&fabric->net, link - fabric->net_link);
    link = find_link(fabric, link, &at);
    if (link < 2 * at.kind->n_seats) {
        part = &at.kind->parts[at.kind->seats[link / 2]];
        return (struct coll__fabric_link){part->latency, part->beta,
                                          part->beta};
    }
    link -= 2 * at.kind->n_seats;
    if (link < 2 * at.kind->n_nics) {
        part = &at.kind->parts[at.kind->nics[link / 2]];
        return (struct coll__fabric_link){
            part->latency + fabric->net.latency, part->beta, part->beta};
    }
    link -= 2 * at.kind->n_nics;
    edge = &at.kind->edges[link / 2];
    return (struct coll__fabric_link){edge->latency, edge->beta, edge->share};
}

void coll__fabric_link_name(const struct coll__fabric *fabric, int link,
                            char name[COLL__LINK_NAME])
{
    struct fabric_place at;
    const struct graph *kind;

    if (link >= fabric->net_link) {
        coll__net_link_name(&fabric->net, link - fabric->net_link, name);
        return;
    }
    link = find_link(fabric, link, &at);
    kind = at.kind;
    if (link < 2 * kind->n_seats) {
        snprintf(name, COLL__LINK_NAME, "host %d: %s %s", at.host,
                 kind->parts[kind->seats[link / 2]].name,
                 link & 1 ? "in" : "out");
        return;
    }
    link -= 2 * kind->n_seats;
    if (link < 2 * kind->n_nics) {
        snprintf(name, COLL__LINK_NAME, "host %d: %s %s", at.host,
                 kind->parts[kind->nics[link / 2]].name,
                 link & 1 ? "from the network" : "to the network");
        return;
    }
    link -= 2 * kind->n_nics;
    snprintf(name, COLL__LINK_NAME, "host %d: %s to %s", at.host,
             kind->parts[coll__edge_from(kind, link)].name,
             kind->parts[coll__edge_from(kind, link ^ 1)].name);
}
