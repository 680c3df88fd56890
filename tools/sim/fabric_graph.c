/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_graph.c - a small graph of parts and its best paths.
 *
 * The idea: most parts of a host (cores) have one link.  Paths are stored only between
 * the other parts, the inner parts.  For each pair the last link of the path is stored,
 * so a path is walked backwards.
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"

#include <stdlib.h>
#include <string.h>

/* Make room for one more of `size` bytes each. */
static int grow(void **items, int n, int *cap, size_t size)
{
    int want = *cap ? 2 * *cap : 16;
    void *new;

    if (n < *cap)
        return 0;
    new = realloc(*items, (size_t)want * size);
    if (!new)
        return -1;
    *items = new;
    *cap = want;
    return 0;
}

int coll__graph_part(struct graph *graph, const struct graph_part *part)
{
    void *parts = graph->parts;

    if (grow(&parts, graph->n_parts, &graph->cap_parts, sizeof(*part)))
        return -1;
    graph->parts = parts;
    graph->parts[graph->n_parts] = *part;
    return graph->n_parts++;
}

int coll__graph_edge(struct graph *graph, const struct graph_edge *edge)
{
    void *edges = graph->edges;

    if (grow(&edges, graph->n_edges, &graph->cap_edges, sizeof(*edge)))
        return -1;
    graph->edges = edges;
    graph->edges[graph->n_edges] = *edge;
    return graph->n_edges++;
}

void coll__graph_fini(struct graph *graph)
{
    free(graph->parts);
    free(graph->edges);
    free(graph->seats);
    free(graph->nics);
    free(graph->inner);
    free(graph->via);
    free(graph->nic);
    memset(graph, 0, sizeof(*graph));
}

/* ---- numbers ------------------------------------------------------------- */

static int other_end(const struct graph *graph, int part)
{
    const struct graph_edge *edge = &graph->edges[graph->parts[part].edge];

    return edge->a == part ? edge->b : edge->a;
}

/* Parts with one link are outer ones, unless two such parts are joined. */
static int is_inner(const struct graph *graph, int part)
{
    return graph->parts[part].n_edges != 1 ||
           graph->parts[other_end(graph, part)].n_edges == 1;
}

static void count_edges(struct graph *graph)
{
    for (int i = 0; i < graph->n_parts; i++)
        graph->parts[i].n_edges = 0;
    for (int e = 0; e < graph->n_edges; e++) {
        struct graph_part *a = &graph->parts[graph->edges[e].a];
        struct graph_part *b = &graph->parts[graph->edges[e].b];

        a->n_edges++;
        b->n_edges++;
        a->edge = b->edge = e;
    }
}

static int number_parts(struct graph *graph)
{
    size_t n = (size_t)graph->n_parts + 1;

    graph->seats = malloc(n * sizeof(int));
    graph->nics = malloc(n * sizeof(int));
    graph->inner = malloc(n * sizeof(int));
    if (!graph->seats || !graph->nics || !graph->inner)
        return COLL_ERR_NOMEM;
    count_edges(graph);
    for (int i = 0; i < graph->n_parts; i++) {
        struct graph_part *part = &graph->parts[i];

        part->inner = is_inner(graph, i) ? graph->n_inner : -1;
        if (part->inner >= 0)
            graph->inner[graph->n_inner++] = i;
        if (part->kind == GRAPH_SEAT) {
            part->number = graph->n_seats;
            graph->seats[graph->n_seats++] = i;
        } else if (part->kind == GRAPH_NIC) {
            part->number = graph->n_nics;
            graph->nics[graph->n_nics++] = i;
        }
    }
    return graph->n_inner > FABRIC_MAX_INNER ? COLL_ERR_INVALID : COLL_OK;
}

/* ---- best paths ---------------------------------------------------------- */

struct reach {
    int n_links; /* -1 not reached */
    int n_edges; /* free passages as well */
    double beta, latency;
    int is_done;
};

/* The links that leave each inner part for another one. */
struct ways {
    int *first, *links; /* [n_inner + 1], [2 n_edges] */
    struct reach *reach; /* [n_inner] */
};

static int is_better(const struct reach *a, const struct reach *b)
{
    if (a->n_links != b->n_links)
        return b->n_links < 0 || (a->n_links >= 0 && a->n_links < b->n_links);
    if (a->beta < b->beta || a->beta > b->beta)
        return a->beta < b->beta;
    return a->latency < b->latency;
}

static int ways_init(struct ways *ways, const struct graph *graph)
{
    int n = graph->n_inner, n_links = 2 * graph->n_edges;

    ways->first = calloc((size_t)n + 2, sizeof(int));
    ways->links = malloc(((size_t)n_links + 1) * sizeof(int));
    ways->reach = malloc(((size_t)n + 1) * sizeof(*ways->reach));
    if (!ways->first || !ways->links || !ways->reach)
        return COLL_ERR_NOMEM;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill in */
        for (int link = 0; link < n_links; link++) {
            int from = graph->parts[coll__edge_from(graph, link)].inner;
            int to = graph->parts[coll__edge_from(graph, link ^ 1)].inner;

            if (from < 0 || to < 0)
                continue;
            if (pass)
                ways->links[ways->first[from + 1]++] = link;
            else if (from + 2 <= n)
                ways->first[from + 2]++;
        }
        for (int i = 2; i <= n && !pass; i++)
            ways->first[i] += ways->first[i - 1];
    }
    return COLL_OK;
}

static void ways_fini(struct ways *ways)
{
    free(ways->first);
    free(ways->links);
    free(ways->reach);
}

/* Return the best part that is not done; -1 if all are done. */
static int nearest(const struct reach *reach, int n)
{
    int best = -1;

    for (int i = 0; i < n; i++)
        if (!reach[i].is_done && reach[i].n_links >= 0 &&
            (best < 0 || is_better(&reach[i], &reach[best])))
            best = i;
    return best;
}

static void relax(const struct graph *graph, struct ways *ways, int at,
                  int *via)
{
    for (int i = ways->first[at]; i < ways->first[at + 1]; i++) {
        int link = ways->links[i];
        const struct graph_edge *edge = &graph->edges[link / 2];
        int to = graph->parts[coll__edge_from(graph, link ^ 1)].inner;
        struct reach new = ways->reach[at];

        new.is_done = 0;
        new.n_edges++;
        new.n_links += edge->beta > 0;
        new.beta = edge->beta > new.beta ? edge->beta : new.beta;
        new.latency += edge->latency;
        if (!ways->reach[to].is_done && is_better(&new, &ways->reach[to])) {
            ways->reach[to] = new;
            via[to] = link;
        }
    }
}

/* Dijkstra from one inner part; seats and NICs only end paths.  Returns the number of
 * edges of the longest path. */
static int find_paths(const struct graph *graph, struct ways *ways, int from)
{
    int n = graph->n_inner, *via = graph->via + (size_t)from * (size_t)n;
    int longest = 0;

    for (int i = 0; i < n; i++) {
        ways->reach[i] = (struct reach){.n_links = -1};
        via[i] = -1;
    }
    ways->reach[from].n_links = 0;
    for (int at = from; at >= 0; at = nearest(ways->reach, n)) {
        enum graph_kind kind = graph->parts[graph->inner[at]].kind;

        ways->reach[at].is_done = 1;
        if (ways->reach[at].n_edges > longest)
            longest = ways->reach[at].n_edges;
        if (at == from || (kind != GRAPH_SEAT && kind != GRAPH_NIC))
            relax(graph, ways, at, via);
    }
    return longest;
}

static int find_all(struct graph *graph)
{
    size_t n = (size_t)graph->n_inner;
    struct ways ways;
    int rc = ways_init(&ways, graph);

    graph->via = malloc((n * n + 1) * sizeof(int));
    graph->nic = malloc(((size_t)graph->n_seats + 1) * sizeof(int));
    if (!graph->via || !graph->nic)
        rc = COLL_ERR_NOMEM;
    for (int i = 0; i < graph->n_inner && rc == COLL_OK; i++)
        rc = find_paths(graph, &ways, i) > FABRIC_MAX_PATH - 2
                 ? COLL_ERR_INVALID
                 : COLL_OK;
    ways_fini(&ways);
    return rc;
}

int coll__graph_finish(struct graph *graph)
{
    int rc = number_parts(graph);

    if (rc == COLL_OK)
        rc = find_all(graph);
    if (rc == COLL_OK)
        coll__order_nic(graph, graph->nic);
    return rc;
}

/* ---- walking them -------------------------------------------------------- */

/* Cross an outer part's only link, outwards or inwards; returns the other end. */
static int cross(const struct graph *graph, int part, int inwards, int *link)
{
    int edge = graph->parts[part].edge;

    *link = 2 * edge + ((graph->edges[edge].b == part) ^ inwards);
    return other_end(graph, part);
}

static int is_end(const struct graph *graph, int part)
{
    return graph->parts[part].kind == GRAPH_SEAT ||
           graph->parts[part].kind == GRAPH_NIC;
}

int coll__graph_path(const struct graph *graph, int from, int to, int *links)
{
    int back[FABRIC_MAX_PATH], n = 0, n_back = 0, head = -1;

    if (from == to)
        return 0;
    if (graph->parts[from].inner < 0) {
        from = cross(graph, from, 0, &head);
        if (from != to && is_end(graph, from))
            return -1;
    }
    if (from != to && graph->parts[to].inner < 0) {
        to = cross(graph, to, 1, &back[n_back++]);
        if (from != to && is_end(graph, to))
            return -1;
    }
    while (to != from) {
        int link = graph->via[(size_t)graph->parts[from].inner *
                                  (size_t)graph->n_inner +
                              (size_t)graph->parts[to].inner];

        if (link < 0)
            return -1;
        back[n_back++] = link;
        to = coll__edge_from(graph, link);
    }
    if (head >= 0 && graph->edges[head / 2].beta > 0)
        links[n++] = head;
    while (n_back--)
        if (graph->edges[back[n_back] / 2].beta > 0)
            links[n++] = back[n_back];
    return n;
}

/* Return the inner part through which a seat reaches others: itself, or the part that
 * its only link leads to; -1 if that is another seat. */
static int entry_of(const struct graph *graph, int part)
{
    if (graph->parts[part].inner >= 0)
        return graph->parts[part].inner;
    part = other_end(graph, part);
    return is_end(graph, part) ? -1 : graph->parts[part].inner;
}

/* Seats with the same entry reach each other through it; so entries must reach each
 * other. */
int coll__graph_is_joined(const struct graph *graph, int *a, int *b)
{
    int entry[FABRIC_MAX_INNER], seat[FABRIC_MAX_INNER], n = 0;
    char seen[FABRIC_MAX_INNER] = {0};

    for (int s = 0; s < graph->n_seats; s++) {
        int at = entry_of(graph, graph->seats[s]);

        *a = graph->seats[s];
        *b = graph->seats[s ? 0 : graph->n_seats - 1];
        if (at < 0)
            return 0;
        if (seen[at])
            continue;
        seen[at] = 1;
        for (int i = 0; i < n; i++) {
            *b = seat[i];
            if (graph->via[(size_t)at * (size_t)graph->n_inner +
                           (size_t)entry[i]] < 0)
                return 0;
        }
        entry[n] = at;
        seat[n++] = graph->seats[s];
    }
    return 1;
}
