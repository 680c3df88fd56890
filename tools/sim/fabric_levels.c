/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_levels.c - groups within groups on a fabric: ranks that share a cache, a PCIe
 * switch, a NUMA node, a socket, a host, or a group of the network.
 *
 * The invariant: a group is known by its leader, the first of its ranks in
 * order of seats; every group lies within one of each level above.  So two
 * levels are the same when they have equally many leaders.
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_price.h"
#include "lib/trace/log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_INSIDE (GRAPH_SOCKET + 1) /* levels inside a host */
#define SAME 0.01                   /* prices differ by less */

/* ---- who is with whom ---------------------------------------------------- */

/* Return the smallest part around a seat that is of this kind or an inner one; the seat
 * itself when there is none. */
static int part_of(const struct graph *kind, int local, enum graph_kind level)
{
    int part = kind->seats[local];

    for (int up = kind->parts[part].within;
         up >= 0 && kind->parts[up].kind <= level; up = kind->parts[up].within)
        if (kind->parts[part].kind != level)
            part = up;
    return part;
}

/* leader[part] in the current host; valid if stamp[part] is that host's */
struct leaders {
    int leader[FABRIC_MAX_PARTS], stamp[FABRIC_MAX_PARTS];
};

static void color_inside(const struct levels *levels, enum graph_kind level,
                         struct leaders *leaders, int *color)
{
    for (int p = 0; p < FABRIC_MAX_PARTS; p++)
        leaders->stamp[p] = -1;
    for (int i = 0; i < levels->nranks; i++) {
        int rank = levels->sorted[i];
        struct fabric_place at =
            coll__fabric_place(levels->fabric, levels->seat[rank]);
        int part = part_of(at.kind, at.local, level);

        if (leaders->stamp[part] != at.host)
            leaders->leader[part] = rank;
        leaders->stamp[part] = at.host;
        color[rank] = leaders->leader[part];
    }
}

static void color_hosts(const struct levels *levels, int *color)
{
    int host = -1, leader = -1;

    for (int i = 0; i < levels->nranks; i++) {
        int rank = levels->sorted[i];
        int here = coll__fabric_host(levels->fabric, levels->seat[rank]);

        if (here != host)
            leader = rank;
        host = here;
        color[rank] = leader;
    }
}

/* A host is where its first NIC is. */
static int color_network(const struct levels *levels, int level, int *color)
{
    const struct coll__fabric *fabric = levels->fabric;
    size_t n = (size_t)max_of(fabric->n_nics, fabric->n_hosts) +
               (size_t)fabric->net.graph.n_parts;
    int *leader = malloc(n * sizeof(int));

    if (!leader)
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        leader[i] = -1;
    for (int i = 0; i < levels->nranks; i++) {
        int rank = levels->sorted[i];
        struct fabric_place at = coll__fabric_place(fabric, levels->seat[rank]);
        struct net_end end = {coll__host_nic(&at), at.host, 0};
        int group = coll__net_group(&fabric->net, level, &end);

        if (leader[group] < 0)
            leader[group] = rank;
        color[rank] = leader[group];
    }
    free(leader);
    return COLL_OK;
}

/* ---- keep what makes a difference ---------------------------------------- */

static int count_groups(const int *color, int n)
{
    int count = 0;

    for (int r = 0; r < n; r++)
        count += color[r] == r;
    return count;
}

static void remove_level(struct levels *levels, int l)
{
    free(levels->level[l].color);
    levels->n--;
    memmove(&levels->level[l], &levels->level[l + 1],
            (size_t)(levels->n - l) * sizeof(levels->level[0]));
    levels->level[levels->n].color = NULL;
}

/* Append a level, unless its groups are single ranks or equal to those below. */
static int add_level(struct levels *levels, const char *name, int is_inside,
                     int level, struct leaders *leaders)
{
    struct one_level *new = &levels->level[levels->n];
    int below = levels->n ? new[-1].n_groups : levels->nranks;
    int rc = COLL_OK;

    new->color = malloc((size_t)levels->nranks * sizeof(int));
    if (!new->color)
        return COLL_ERR_NOMEM;
    levels->n++;
    if (level < 0)
        color_hosts(levels, new->color);
    else if (is_inside)
        color_inside(levels, (enum graph_kind)level, leaders, new->color);
    else
        rc = color_network(levels, level, new->color);
    if (rc)
        return rc;
    new->is_inside = is_inside;
    new->n_groups = count_groups(new->color, levels->nranks);
    snprintf(new->price.name, sizeof(new->price.name), "%s", name);
    if (new->n_groups != below)
        return COLL_OK;
    if (level < 0 && levels->n > 1) { /* a host is what others ask for */
        new[-1].is_inside = 0;
        new[-1].price = new->price;
    }
    remove_level(levels, levels->n - 1);
    return COLL_OK;
}

/* Append all levels from the inside out, until a group holds all ranks. */
static int find_levels(struct levels *levels, struct leaders *leaders)
{
    static const char *const inside[] = {
        [GRAPH_CACHE] = "cache", [GRAPH_SWITCH] = "switch",
        [GRAPH_NUMA] = "numa",   [GRAPH_SOCKET] = "socket"};
    const struct net *net = &levels->fabric->net;
    struct one_level *last;
    int rc = COLL_OK;

    for (int k = 0; k < N_INSIDE && rc == COLL_OK; k++)
        rc = add_level(levels, inside[k], 1, k, leaders);
    if (rc == COLL_OK)
        rc = add_level(levels, "host", 0, -1, NULL);
    for (int l = 0; l < coll__net_n_levels(net) && rc == COLL_OK; l++)
        rc = add_level(levels, coll__net_level_name(net, l), 0, l, NULL);
    last = &levels->level[levels->n];
    if (rc || (levels->n && last[-1].n_groups == 1))
        return rc;
    last->color = malloc((size_t)levels->nranks * sizeof(int));
    if (!last->color)
        return COLL_ERR_NOMEM;
    for (int r = 0; r < levels->nranks; r++)
        last->color[r] = levels->sorted[0];
    last->n_groups = 1;
    snprintf(last->price.name, sizeof(last->price.name), "%s",
             levels->fabric->n_hosts > 1 ? "network" : "host");
    levels->n++;
    return COLL_OK;
}

static int is_same(double a, double b)
{
    return fabs(a - b) <= SAME * fmax(a, b);
}

/* Return how much a level's price differs from that of the next outer one, 0 if it does
 * not.  It differs if the groups share a slow link. */
static double difference(const struct levels *levels, int l)
{
    const struct coll__fabric_price *in = &levels->level[l].price;
    const struct coll__fabric_price *out = &levels->level[l + 1].price;
    double shared = out->share * levels->nranks / levels->level[l].n_groups;

    if (is_same(in->alpha, out->alpha) && is_same(in->beta, out->beta) &&
        shared <= out->beta * (1 + SAME))
        return 0;
    return fabs(log(in->alpha / out->alpha)) + fabs(log(in->beta / out->beta));
}

/* Choose a level to drop: one inside hosts that makes no difference or, if there are too
 * many levels, the one that makes the least; -1 for none. */
static int needless_level(const struct levels *levels)
{
    double least = 0;
    int best = -1;

    for (int l = 0; l < levels->n - 1; l++) {
        double here = difference(levels, l);

        if (levels->level[l].is_inside && here <= 0)
            return l;
        if (strcmp(levels->level[l].price.name, "host") &&
            (best < 0 || here < least)) {
            best = l;
            least = here;
        }
    }
    return levels->n > COLL__FABRIC_LEVELS ? best : -1;
}

/* ---- the whole ----------------------------------------------------------- */

static int make_levels(struct levels *levels)
{
    struct leaders *leaders = malloc(sizeof(*leaders));
    int rc = leaders ? find_levels(levels, leaders) : COLL_ERR_NOMEM;

    free(leaders);
    while (rc == COLL_OK) {
        int l;

        rc = coll__levels_price(levels);
        l = rc ? -1 : needless_level(levels);
        if (l < 0)
            break;
        remove_level(levels, l);
    }
    return rc;
}

int coll__fabric_levels_init(const struct coll__fabric *fabric, int nranks,
                             const int *seat,
                             struct coll__fabric_levels *out)
{
    struct levels levels = {.fabric = fabric, .nranks = nranks, .seat = seat};
    int *sorted = malloc((size_t)nranks * sizeof(int));
    int rc = COLL_ERR_NOMEM;

    levels.sorted = sorted;
    if (sorted) {
        rc = coll__fabric_sort(fabric, nranks, seat, sorted);
        if (rc == COLL_OK)
            rc = make_levels(&levels);
    }
    if (rc == COLL_ERR_NOMEM)
        log_error("topo", "no memory left for the levels of %d ranks; free "
                          "some memory",
                  nranks);
    free(sorted);
    memset(out, 0, sizeof(*out));
    for (int l = 0; l < levels.n; l++)
        if (rc || l == levels.n - 1)
            free(levels.level[l].color);
        else
            out->color[l] = levels.level[l].color;
    for (int l = 0; l < levels.n && !rc; l++)
        out->prices[l] = levels.level[l].price;
    out->n_levels = rc ? 0 : levels.n;
    return rc;
}

void coll__fabric_levels_fini(struct coll__fabric_levels *levels)
{
    for (int l = 0; l < COLL__FABRIC_LEVELS; l++)
        free(levels->color[l]);
    memset(levels, 0, sizeof(*levels));
}
