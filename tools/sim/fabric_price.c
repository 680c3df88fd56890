/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_price.c - the price of messages between the groups of a level, from the routes
 * of sampled groups to their neighbours and the load on each link.
 *
 * Let each of the k ranks of a group send a byte to the next group at once.  The
 * slowest link needs T s: the max over links of load x share.  Then
 * share = T / k, since k messages of n bytes take n k share = n T.  If groups
 * differ, the slowest T and the largest k count.  One rank's
 * messages to several others share the first links of their routes.
 * How much worse far messages are than near ones (`spread`) is counted on one
 * group, all of it.
 */
#include "tools/sim/fabric_price.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROUTES 32768 /* looked at for one level */
#define MAX_SAMPLES 64

/* A list of all ranks in which the ranks of each group are neighbours on every level.
 * Groups are in order of their seats; within an innermost group, ranks are in the
 * ring's order.  The groups of the level below the current one are pieces of that
 * list. */
struct pieces {
    int *order, *scratch; /* [nranks] */
    int *first;           /* [n + 1]: where each piece begins */
    int *parent;          /* [n]: the first piece in the same group */
    int *piece;           /* [nranks]: where a rank of the list is */
    int n;
    int *load; /* [n_links], zeros between uses */
    int *ring; /* [nranks] */
};

/* ---- pieces -------------------------------------------------------------- */

/* Sort the list by groups.  Groups, and the ranks within each, stay in the order in
 * which they come in the list. */
static void gather(struct pieces *pieces, const int *color, int n)
{
    int *count = pieces->first, *order = pieces->order, at = 0;

    memset(count, 0, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++)
        count[color[order[i]]]++;
    for (int i = 0; i < n; i++) { /* a group begins with its first rank */
        int leader = color[order[i]], size = count[leader];

        if (size > 0) {
            count[leader] = -1 - at;
            at += size;
        }
        pieces->scratch[-1 - count[leader]--] = order[i];
    }
    memcpy(order, pieces->scratch, (size_t)n * sizeof(int));
}

/* Which pieces level l joins. */
static void cut(const struct levels *levels, int l, struct pieces *pieces)
{
    const int *below = l ? levels->level[l - 1].color : NULL;
    const int *color = levels->level[l].color;

    pieces->n = 0;
    for (int i = 0; i < levels->nranks; i++) {
        int rank = pieces->order[i], before = i ? pieces->order[i - 1] : -1;
        int p = pieces->n;

        if (i && below && below[rank] == below[before])
            continue;
        pieces->first[p] = i;
        pieces->parent[p] =
            i && color[rank] == color[before] ? pieces->parent[p - 1] : p;
        pieces->n++;
    }
    pieces->first[pieces->n] = levels->nranks;
}

/* Return the pieces of the group that piece p is in. */
static int siblings(const struct pieces *pieces, int p)
{
    int first = pieces->parent[p], end = p;

    while (end < pieces->n && pieces->parent[end] == first)
        end++;
    return end - first;
}

static int size_of(const struct pieces *pieces, int p)
{
    return pieces->first[p + 1] - pieces->first[p];
}

/* ---- routes -------------------------------------------------------------- */

static int route(const struct levels *levels, const struct pieces *pieces,
                 int from, int to, int *links)
{
    return coll__fabric_route(levels->fabric,
                              levels->seat[pieces->order[from]],
                              levels->seat[pieces->order[to]], links);
}

/* Return the i-th rank of the list after piece p's that is in the same group. */
static int outside(const struct pieces *pieces, int p, int i)
{
    int first = pieces->first[pieces->parent[p]];
    int n = pieces->first[pieces->parent[p] + siblings(pieces, p)] - first;

    return first + (pieces->first[p + 1] - first + i) % n;
}

/* Send from the ranks of a piece to as many ranks of other pieces; share becomes the T
 * above divided by the number of messages, or, for links that one message alone passes,
 * by the number of ranks.  A single rank shares nothing. */
static void price_group(const struct levels *levels, struct pieces *pieces,
                        int p, struct coll__fabric_price *price)
{
    int links[COLL__ROUTE_MAX], k = size_of(pieces, p), others;
    double time[2] = {0, 0}; /* of links that one message passes, and several */

    others = pieces->first[pieces->parent[p] + siblings(pieces, p)] -
             pieces->first[pieces->parent[p]] - k;
    k = k < others ? k : others;
    for (int pass = 0; pass < 2; pass++) /* count, then clear */
        for (int i = 0; i < k; i++) {
            int n = route(levels, pieces, pieces->first[p] + i,
                          outside(pieces, p, i), links);

            for (int j = 0; j < n; j++) {
                struct coll__fabric_link link =
                    coll__fabric_link(levels->fabric, links[j]);
                int *load = &pieces->load[links[j]];
                double *slowest;

                *load = pass ? 0 : *load + 1;
                slowest = &time[*load > 1];
                price->beta = max_double(price->beta, link.beta);
                *slowest = max_double(*slowest, *load * link.share);
            }
        }
    if (size_of(pieces, p) < 2)
        return;
    price->share = max_double(price->share, time[0] / size_of(pieces, p));
    price->share = max_double(price->share, time[1] / k);
}

/* Price the links that the routes from one rank to two others of its group share. */
static void price_rank(const struct levels *levels, struct pieces *pieces,
                       int p, int next, struct coll__fabric_price *price)
{
    int a[COLL__ROUTE_MAX], b[COLL__ROUTE_MAX];
    int size = siblings(pieces, p), first = pieces->parent[p];
    int other = size > 2 ? first + (p - first + 2) % size : next;
    int n = route(levels, pieces, p, next, a), is_shared = 1;
    int n_other = route(levels, pieces, p, other, b);

    for (int j = 0; j < n; j++) {
        struct coll__fabric_link link =
            coll__fabric_link(levels->fabric, a[j]);

        is_shared &= j < n_other && a[j] == b[j];
        price->beta = max_double(price->beta, link.beta);
        if (is_shared)
            price->share = max_double(price->share, link.share);
    }
}

static double alpha_of(const struct levels *levels,
                       const struct pieces *pieces, int from, int to)
{
    int links[COLL__ROUTE_MAX];
    int n = route(levels, pieces, pieces->first[from], pieces->first[to], links);
    double alpha = levels->fabric->overhead;

    for (int j = 0; j < n; j++)
        alpha += coll__fabric_link(levels->fabric, links[j]).latency;
    return alpha;
}

/* Return the time of the slowest link when each rank of a group's n pieces sends a byte
 * to the piece `distance` further. */
static double shift_time(const struct levels *levels, struct pieces *pieces,
                         int n, int distance)
{
    int links[COLL__ROUTE_MAX];
    double time = 0;

    for (int pass = 0; pass < 2; pass++) /* count, then clear */
        for (int i = 0; i < pieces->first[n]; i++) {
            int p = pieces->piece[i], to = (p + distance) % n, n_links;
            int at = (i - pieces->first[p]) % size_of(pieces, to);

            n_links = route(levels, pieces, i, pieces->first[to] + at, links);
            for (int j = 0; j < n_links; j++) {
                int *load = &pieces->load[links[j]];

                *load = pass ? 0 : *load + 1;
                time = max_double(
                    time,
                    *load * coll__fabric_link(levels->fabric, links[j]).share);
            }
        }
    return time;
}

/* Computed on the first group, as an example. */
static double spread_of(const struct levels *levels, struct pieces *pieces)
{
    int n = siblings(pieces, 0);
    double next, far;

    if (n < 4 || pieces->first[n] > MAX_ROUTES)
        return 1;
    for (int p = 0; p < n; p++)
        for (int i = pieces->first[p]; i < pieces->first[p + 1]; i++)
            pieces->piece[i] = p;
    next = shift_time(levels, pieces, n, 1);
    far = shift_time(levels, pieces, n, n / 2);
    return far > next ? far / next : 1;
}

/* ---- a level ------------------------------------------------------------- */

/* Add the alphas of one sample; returns their number.  largest: the ranks of the largest
 * piece. */
static int price_piece(const struct levels *levels, struct pieces *pieces,
                       int p, int largest, struct coll__fabric_price *price)
{
    int n = siblings(pieces, p), first = pieces->parent[p], n_alphas = 0, next;

    if (n < 2)
        return 0;
    next = p + 1 < first + n ? p + 1 : p - 1;
    if (largest > 1)
        price_group(levels, pieces, p, price);
    else
        price_rank(levels, pieces, p, next, price);
    for (int far = 1; far < n; far *= 2, n_alphas++)
        price->alpha +=
            alpha_of(levels, pieces, p, first + (p - first + far) % n);
    return n_alphas;
}

static void price_level(struct levels *levels, int l, struct pieces *pieces)
{
    struct coll__fabric_price *price = &levels->level[l].price;
    int largest = 1, n_alphas = 0, n_samples;

    for (int p = 0; p < pieces->n; p++)
        largest = max_of(largest, size_of(pieces, p));
    n_samples = MAX_ROUTES / largest;
    n_samples = n_samples > MAX_SAMPLES ? MAX_SAMPLES : max_of(n_samples, 2);
    if (n_samples > pieces->n)
        n_samples = pieces->n;
    price->alpha = price->beta = price->share = 0;
    for (int i = 0; i < n_samples; i++)
        n_alphas += price_piece(levels, pieces,
                                (int)((long long)i * pieces->n / n_samples),
                                largest, price);
    for (int p = 0; p < pieces->n && !n_alphas; p++) /* only loners so far */
        n_alphas = price_piece(levels, pieces, p, largest, price);
    if (n_alphas)
        price->alpha /= n_alphas;
    if (price->share <= 0) /* all samples are single ranks */
        price->share = price->beta;
    price->gap = levels->fabric->gap;
    price->spread = spread_of(levels, pieces);
}

/* ---- all ----------------------------------------------------------------- */

static int pieces_init(struct pieces *pieces, const struct levels *levels)
{
    size_t n = (size_t)levels->nranks + 1;

    pieces->order = malloc(n * sizeof(int));
    pieces->scratch = malloc(n * sizeof(int));
    pieces->first = malloc(n * sizeof(int));
    pieces->parent = malloc(n * sizeof(int));
    pieces->piece = malloc(n * sizeof(int));
    pieces->ring = malloc(n * sizeof(int));
    pieces->load = calloc((size_t)levels->fabric->n_links + 1, sizeof(int));
    if (!pieces->order || !pieces->scratch || !pieces->first ||
        !pieces->parent || !pieces->piece || !pieces->load || !pieces->ring)
        return COLL_ERR_NOMEM;
    return coll__fabric_ring(levels->fabric, levels->nranks, levels->seat,
                             pieces->ring);
}

static void put_in_order(struct pieces *pieces, const struct levels *levels,
                         const int *order)
{
    memcpy(pieces->order, order, (size_t)levels->nranks * sizeof(int));
    for (int l = 0; l < levels->n; l++)
        gather(pieces, levels->level[l].color, levels->nranks);
}

int coll__levels_price(struct levels *levels)
{
    struct pieces pieces = {0};
    int rc = pieces_init(&pieces, levels);

    for (int l = 0; l < levels->n && rc == COLL_OK; l++) {
        if (l < 2)
            put_in_order(&pieces, levels, l ? levels->sorted : pieces.ring);
        cut(levels, l, &pieces);
        price_level(levels, l, &pieces);
    }
    free(pieces.order);
    free(pieces.scratch);
    free(pieces.first);
    free(pieces.parent);
    free(pieces.piece);
    free(pieces.load);
    free(pieces.ring);
    return rc;
}
