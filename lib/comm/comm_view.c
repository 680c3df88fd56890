/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_view.c - the communicator's view: which ranks share a cache, a NUMA node, a
 * package, a host.
 *
 * All of it comes from what the ranks told each other when they met, so the view is
 * the same on every rank.
 */
#include "lib/comm/comm_view.h"
#include "lib/comm/comm.h"
#include "lib/trace/log.h"
#include "lib/util/map.h"
#include "lib/price/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds to reduce or copy one byte, from a core's memory bandwidth. */
#define GAMMA 0.1e-9

/* Kinds of parts that may become levels, from the inside out; the last is the host. */
enum { N_KINDS = COLL__WITHIN + 1 };

static const char *const names[N_KINDS] = {"cache", "numa", "package", "host"};

static int32_t part_of(const struct coll__peer *peer, int kind)
{
    return kind < COLL__WITHIN ? peer->within[kind] : 0;
}

/* Set color[r] to the lowest rank that shares this kind of part with r.  Returns 1; 0
 * if some rank is in no such part; COLL_ERR_NOMEM. */
static int color_ranks(const struct coll_comm *comm, int kind, int *color)
{
    struct coll__map lowest; /* of a host and a part of it */
    int rc = coll__map_init(&lowest, (size_t)comm->size) ? COLL_ERR_NOMEM : 1;

    for (int r = 0; r < comm->size && rc == 1; r++) {
        const struct coll__peer *me = &comm->peers[r];
        int32_t part = part_of(me, kind);
        int *at;

        if (part < 0) {
            rc = 0;
            break;
        }
        at = coll__map_at(&lowest, (uint64_t)me->host << 32 | (uint32_t)part);
        if (*at < 0)
            *at = r;
        color[r] = *at;
    }
    coll__map_fini(&lowest);
    return rc;
}

/* Return the price of a link inside a host: the transport's, and what the distance
 * adds. */
static struct coll__level inside_price(const struct coll__link *link,
                                       const struct coll__farther *more)
{
    double alone = link->beta - link->once; /* the readers' part */

    return (struct coll__level){.alpha = link->alpha + more->alpha,
                                .beta = link->once + alone * more->copy,
                                .share = more->share,
                                .gap = link->gap,
                                .once = link->once};
}

/* Return the price of links between hosts, whose devices the ranks of a host share. */
static struct coll__level network_price(const struct coll__link *link)
{
    return (struct coll__level){.alpha = link->alpha,
                                .beta = link->beta,
                                .share =
                                    link->share > 0 ? link->share : link->beta,
                                .gap = link->gap,
                                .both = link->both};
}

static void set_price(struct coll__level *level, const char *name,
                      const struct coll__level *price)
{
    snprintf(level->name, sizeof(level->name), "%s", name);
    level->alpha = price->alpha;
    level->beta = price->beta;
    level->share = price->share;
    level->gap = level->overhead =
        price->gap > 0 ? price->gap : price->alpha / 4;
    level->once = price->once;
    level->both = price->both;
}

/* Return the largest kind of part that messages leave although they stay within a group
 * of this kind. */
static enum coll__leaves leaves_within(const struct coll_comm *comm, int kind,
                                       const int *color)
{
    for (int part = kind - 1; part >= 0; part--)
        for (int r = 0; r < comm->size; r++) {
            int32_t a = part_of(&comm->peers[r], part);
            int32_t b = part_of(&comm->peers[color ? color[r] : 0], part);

            if (a >= 0 && b >= 0 && a != b)
                return (enum coll__leaves)(LEAVES_CACHE + part);
        }
    return LEAVES_NONE;
}

static void price_inside(struct coll_comm *comm, int l, int kind,
                         const int *color)
{
    static const char *const words[COLL__N_LEAVES] = {
        "within a cache", "to another cache", "to another NUMA node",
        "to another package"};
    enum coll__leaves leaves = leaves_within(comm, kind, color);
    struct coll__farther more = coll__inside_price(&comm->links.inside, leaves);
    struct coll__level price = inside_price(&comm->links.dearest[0], &more);

    set_price(&comm->view.levels[l], names[kind], &price);
    snprintf(comm->links.sources[l], sizeof(comm->links.sources[l]), "%s",
             leaves ? words[leaves] : "the transport's own");
}

static void price_network(struct coll_comm *comm, int l)
{
    struct coll__level price = network_price(&comm->links.dearest[1]);
    const char *via = comm->links.dearest[1].via;

    set_price(&comm->view.levels[l], "network", &price);
    snprintf(comm->links.sources[l], sizeof(comm->links.sources[l]), "%s%s",
             comm->links.measured.alpha > 0 ? "measured; " : "",
             *via ? via : "device not known");
}

/* kinds[l]: what the groups of level l share; color[l]: the groups. */
static void set_prices(struct coll_comm *comm, const int *kinds,
                       const int *const *color)
{
    struct coll__view *view = &comm->view;
    int last = view->n_levels - 1;

    view->gamma = GAMMA;
    view->chunk = comm->settings.chunk;
    for (int l = 0; l < last; l++)
        price_inside(comm, l, kinds[l], color[l]);
    if (comm->n_hosts > 1)
        price_network(comm, last);
    else
        price_inside(comm, last, COLL__WITHIN, NULL);
    for (int l = 0; l <= last; l++) /* measured ones are better */
        if (coll__tune_level(comm->tune, &view->levels[l]))
            snprintf(comm->links.sources[l], sizeof(comm->links.sources[l]),
                     "COLL_TUNE_FILE");
}

/* Find the kinds of parts that make levels, from the inside out, and their ranks'
 * colors; `colors` has space for all.  Returns the number of levels, or a status. */
static int find_levels(const struct coll_comm *comm, int *colors, int *kinds,
                       const int **color)
{
    size_t size = (size_t)comm->size;
    int n = 0;

    for (int kind = 0; kind < N_KINDS; kind++) {
        int *mine = colors + (size_t)n * size;
        int rc = color_ranks(comm, kind, mine);

        if (rc < 0)
            return rc;
        if (!rc ||
            !coll__view_is_level(mine, n ? color[n - 1] : NULL, comm->size))
            continue;
        kinds[n] = kind;
        color[n++] = mine;
    }
    return n;
}

int coll__comm_view_init(struct coll_comm *comm)
{
    int *colors = malloc(N_KINDS * (size_t)comm->size * sizeof(*colors));
    const int *color[N_KINDS];
    int kinds[N_KINDS];
    int n = colors ? find_levels(comm, colors, kinds, color) : COLL_ERR_NOMEM;
    int rc = n;

    if (n < 0)
        log_error("comm", "no memory for %d ranks", comm->size);
    else
        rc = coll__view_init(&comm->view, comm->size, n + 1, color);
    if (rc == COLL_OK)
        set_prices(comm, kinds, color);
    free(colors);
    return rc;
}
