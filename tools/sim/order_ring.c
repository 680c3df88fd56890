/* SPDX-License-Identifier: BSD-3-Clause */
/* order_ring.c - the order in which a ring visits the seats of a host.
 *
 * All of a ring's messages are under way at once, so an order is judged by the
 * load on each link: its time is the max over links of load x share (and over
 * messages of beta), its work the sum over all links that the messages pass.
 * Less time is better, then less work, then the lower seats first.  Up to
 * EXACT seats every order is tried, except those that cannot become better than
 * the best so far.  With more seats, the order of the parts that hold them and a
 * greedy order are tried and improved by reversing pieces (2-opt).
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT 10
#define GREEDY 512  /* seats; with more, the order of the parts is taken */
#define IMPROVE 128
#define PASSES 8
#define EPSILON 1e-9 /* differences of sums below this are rounding */

struct path {
    int n, links[FABRIC_MAX_PATH];
    double beta, work;
};

struct score {
    double time, work;
};

struct search {
    const struct graph *graph;
    const int *seats;
    int n, is_open;
    struct path *paths; /* [n + 1][n + 1]: between seats; n is the network */
    int *load;          /* [2 n_edges] */
    double least_work;  /* of any path */
    int *order, *best;  /* [n]: into seats */
    char *is_used;      /* [n] */
    struct score best_score;
};

static int is_less(double a, double b) { return a * (1 + EPSILON) < b; }

static int is_better(const struct score *a, const struct score *b)
{
    if (is_less(a->time, b->time) || is_less(b->time, a->time))
        return a->time < b->time;
    return is_less(a->work, b->work);
}

static const struct path *path_of(const struct search *search, int from,
                                  int to)
{
    return &search->paths[(size_t)from * (size_t)(search->n + 1) + (size_t)to];
}

/* ---- paths --------------------------------------------------------------- */

/* Return the part at which a message between place i and `seat` ends; if place i is the
 * network, the NIC of `seat`. */
static int end_of(const struct search *search, int i, int other)
{
    const struct graph *graph = search->graph;
    int nic;

    if (i < search->n)
        return graph->seats[search->seats[i]];
    nic = other < search->n ? graph->nic[search->seats[other]] : -1;
    return nic < 0 ? -1 : graph->nics[nic];
}

static void find_path(struct search *search, int i, int j)
{
    const struct graph *graph = search->graph;
    struct path *path =
        &search->paths[(size_t)i * (size_t)(search->n + 1) + (size_t)j];
    int from = end_of(search, i, j), to = end_of(search, j, i);

    path->n = 0;
    path->beta = path->work = 0;
    if (from < 0 || to < 0)
        return;
    path->n = coll__graph_path(graph, from, to, path->links);
    for (int k = 0; k < path->n; k++) {
        const struct graph_edge *edge = &graph->edges[path->links[k] / 2];

        path->beta = fmax(path->beta, edge->beta);
        path->work += edge->share;
    }
    if (i == search->n || j == search->n)
        path->work *= 2; /* of equals, the seat nearest to the network */
    else if (i != j)
        search->least_work = fmin(search->least_work, path->work);
}

/* ---- the value of an order ----------------------------------------------- */

static void add(struct search *search, const struct path *path,
                struct score *score)
{
    score->time = fmax(score->time, path->beta);
    score->work += path->work;
    for (int k = 0; k < path->n; k++) {
        int load = ++search->load[path->links[k]];

        score->time = fmax(
            score->time,
            load * search->graph->edges[path->links[k] / 2].share);
    }
}

static void take_away(struct search *search, const struct path *path)
{
    for (int k = 0; k < path->n; k++)
        search->load[path->links[k]]--;
}

/* Return the message that ends at place i of the order (n: the message that closes
 * it). */
static const struct path *into(const struct search *search, const int *order,
                               int i)
{
    int n = search->n, net = search->is_open;

    return path_of(search, i ? order[i - 1] : net ? n : order[n - 1],
                   i < n ? order[i] : n);
}

static struct score value(struct search *search, const int *order)
{
    struct score score = {0, 0};
    int last = search->n - !search->is_open;

    for (int i = 0; i <= last; i++)
        add(search, into(search, order, i), &score);
    for (int i = 0; i <= last; i++)
        take_away(search, into(search, order, i));
    return score;
}

static void keep(struct search *search, const int *order, struct score score)
{
    if (!is_better(&score, &search->best_score))
        return;
    search->best_score = score;
    memcpy(search->best, order, (size_t)search->n * sizeof(int));
}

static void offer(struct search *search, const int *order)
{
    keep(search, order, value(search, order));
}

/* ---- every order --------------------------------------------------------- */

/* Add the last message, which closes the ring or leaves the host. */
static void close_ring(struct search *search, struct score score)
{
    int *order = search->order;
    const struct path *path =
        into(search, order, search->is_open ? search->n : 0);

    add(search, path, &score);
    take_away(search, path);
    keep(search, order, score);
}

/* Try all seats at place i and after it, given the cost of those before it. */
static void try_all(struct search *search, int i, struct score before)
{
    int n = search->n;
    struct score bound = before;

    bound.work += (n - (i ? i : 1)) * search->least_work;
    if (!is_better(&bound, &search->best_score))
        return;
    if (i == n) {
        close_ring(search, before);
        return;
    }
    for (int next = 0; next < n; next++) {
        struct score score = before;
        const struct path *path;

        if (search->is_used[next])
            continue;
        search->order[i] = next;
        search->is_used[next] = 1;
        path = i || search->is_open ? into(search, search->order, i) : NULL;
        if (path)
            add(search, path, &score);
        try_all(search, i + 1, score);
        if (path)
            take_away(search, path);
        search->is_used[next] = 0;
        if (!i && !search->is_open)
            return; /* a ring may begin anywhere */
    }
}

/* ---- good orders --------------------------------------------------------- */

/* Build an order greedily: the next seat is always the cheapest. */
static void try_greedy(struct search *search, int first)
{
    int n = search->n, *order = search->order;
    struct score so_far = {0, 0};

    memset(search->is_used, 0, (size_t)n);
    order[0] = first;
    search->is_used[first] = 1;
    for (int i = 1; i < n; i++) {
        struct score least = {INFINITY, INFINITY};

        for (int next = 0; next < n; next++) {
            struct score score = so_far;
            const struct path *path = path_of(search, order[i - 1], next);

            if (search->is_used[next])
                continue;
            add(search, path, &score);
            take_away(search, path);
            if (is_better(&score, &least)) {
                least = score;
                order[i] = next;
            }
        }
        search->is_used[order[i]] = 1;
        add(search, path_of(search, order[i - 1], order[i]), &so_far);
    }
    memset(search->load, 0, (size_t)search->graph->n_edges * 2 * sizeof(int));
    offer(search, order);
}

static void reverse(int *order, int i, int j)
{
    for (; i < j; i++, j--) {
        int seat = order[i];

        order[i] = order[j];
        order[j] = seat;
    }
}

static void improve(struct search *search)
{
    int n = search->n, *order = search->order, is_found = 1;

    for (int pass = 0; pass < PASSES && is_found; pass++) {
        struct score before = search->best_score;

        for (int i = !search->is_open; i < n; i++)
            for (int j = i + 1; j < n; j++) {
                memcpy(order, search->best, (size_t)n * sizeof(int));
                reverse(order, i, j);
                offer(search, order);
            }
        is_found = is_better(&search->best_score, &before);
    }
}

/* ---- in order of the parts ----------------------------------------------- */

struct nested {
    int at[GRAPH_SEAT]; /* the part of each kind that holds it, outermost
                         * first */
    int place;
};

static int by_parts(const void *a, const void *b)
{
    const struct nested *x = a, *y = b;

    for (int k = 0; k < GRAPH_SEAT; k++)
        if (x->at[k] != y->at[k])
            return x->at[k] < y->at[k] ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int order_by_parts(const struct graph *graph, const int *seats, int n,
                          int *order)
{
    struct nested *nested = calloc((size_t)n, sizeof(*nested));

    if (!nested)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < n; i++) {
        nested[i].place = i;
        for (int up = graph->parts[graph->seats[seats[i]]].within; up >= 0;
             up = graph->parts[up].within)
            nested[i].at[GRAPH_SOCKET - (int)graph->parts[up].kind] = up + 1;
    }
    qsort(nested, (size_t)n, sizeof(*nested), by_parts);
    for (int i = 0; i < n; i++)
        order[i] = nested[i].place;
    free(nested);
    return COLL_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static int search_init(struct search *search)
{
    size_t n = (size_t)search->n + 1;

    search->paths = malloc(n * n * sizeof(*search->paths));
    search->load =
        calloc((size_t)search->graph->n_edges * 2 + 1, sizeof(int));
    search->is_used = calloc(n, 1);
    search->order = malloc(n * sizeof(int));
    if (!search->paths || !search->load || !search->is_used || !search->order)
        return COLL_ERR_NOMEM;
    search->least_work = INFINITY;
    for (int i = 0; i <= search->n; i++)
        for (int j = 0; j <= search->n; j++)
            find_path(search, i, j);
    if (isinf(search->least_work))
        search->least_work = 0;
    return COLL_OK;
}

static void search_fini(struct search *search)
{
    free(search->paths);
    free(search->load);
    free(search->is_used);
    free(search->order);
}

/* Start with the order of the parts, in best; replace it by a better one, if found. */
static int search_better(struct search *search)
{
    int rc = search_init(search);

    if (rc == COLL_OK) {
        search->best_score = value(search, search->best);
        for (int i = 0; i < search->n; i++)
            search->order[i] = i;
        offer(search, search->order);
        if (search->n <= EXACT) {
            try_all(search, 0, (struct score){0, 0});
        } else {
            try_greedy(search, search->is_open
                                   ? coll__order_root(search->graph,
                                                      search->seats, search->n)
                                   : 0);
            if (search->n <= IMPROVE)
                improve(search);
        }
    }
    search_fini(search);
    return rc;
}

int coll__order_ring(const struct graph *graph, int is_open, int *seats,
                     int n)
{
    int *best = malloc(2 * (size_t)n * sizeof(int)), *old;
    struct search search = {.graph = graph,
                            .seats = seats,
                            .n = n,
                            .is_open = is_open,
                            .best = best};
    int rc;

    if (!best)
        return COLL_ERR_NOMEM;
    rc = order_by_parts(graph, seats, n, best);
    if (rc == COLL_OK && n > 1 && n <= GREEDY)
        rc = search_better(&search);
    old = best + n;
    memcpy(old, seats, (size_t)n * sizeof(int));
    for (int i = 0; i < n && rc == COLL_OK; i++)
        seats[i] = old[best[i]];
    free(best);
    return rc;
}
