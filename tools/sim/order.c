/* SPDX-License-Identifier: BSD-3-Clause */
/* order.c - which seats are near the network: the NIC of each seat, the root of a tree.
 * Pure functions of a graph and its paths. */
#include "tools/sim/fabric_int.h"

static struct coll__seat_reach measure(const struct graph *graph, int seat, int nic)
{
    const struct graph_part *part = &graph->parts[graph->nics[nic]];
    struct coll__seat_reach far = {.n_links = -1};
    int links[FABRIC_MAX_PATH];

    if (part->is_down)
        return far;
    far.n_links = coll__graph_path(graph, graph->seats[seat], graph->nics[nic],
                                   links);
    far.beta = part->beta;
    for (int i = 0; i < far.n_links; i++) {
        const struct graph_edge *edge = &graph->edges[links[i] / 2];

        far.latency += edge->latency;
        far.beta = edge->beta > far.beta ? edge->beta : far.beta;
    }
    return far;
}

int coll__order_compare(const struct coll__seat_reach *a,
                        const struct coll__seat_reach *b)
{
    if (a->n_links < 0 || b->n_links < 0)
        return (a->n_links < 0) - (b->n_links < 0);
    if (a->n_links != b->n_links)
        return a->n_links - b->n_links;
    if (a->latency < b->latency || a->latency > b->latency)
        return a->latency < b->latency ? -1 : 1;
    return (a->beta > b->beta) - (a->beta < b->beta);
}

void coll__order_nic(const struct graph *graph, int *nic)
{
    int load[FABRIC_MAX_PARTS] = {0};

    for (int s = 0; s < graph->n_seats; s++) {
        struct coll__seat_reach best = {.n_links = -1};

        nic[s] = -1;
        for (int i = 0; i < graph->n_nics; i++) {
            struct coll__seat_reach here = measure(graph, s, i);
            int order = coll__order_compare(&here, &best);

            if (here.n_links < 0 || order > 0 ||
                (!order && load[i] >= load[nic[s]]))
                continue;
            best = here;
            nic[s] = i;
        }
        if (nic[s] >= 0)
            load[nic[s]]++;
    }
}

struct coll__seat_reach coll__order_reach(const struct graph *graph, int seat)
{
    struct coll__seat_reach none = {.n_links = -1};

    return graph->nic[seat] < 0 ? none
                                : measure(graph, seat, graph->nic[seat]);
}

int coll__order_root(const struct graph *graph, const int *seats, int n)
{
    struct coll__seat_reach best = coll__order_reach(graph, seats[0]);
    int root = 0;

    for (int i = 1; i < n; i++) {
        struct coll__seat_reach here = coll__order_reach(graph, seats[i]);
        int order = coll__order_compare(&here, &best);

        if (order < 0 || (!order && seats[i] < seats[root])) {
            best = here;
            root = i;
        }
    }
    return root;
}
