/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - how the ranks of a communicator are near each other: groups that
 * share a cache, a NUMA node, a package, a host.
 *
 * Everything here comes from what the ranks told each other when they met, so
 * the view is the same on every rank.
 */
#include "lib/api/comm.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds to reduce or copy one byte, from a core's memory bandwidth. */
#define GAMMA 0.1e-9

/* Candidates for levels, from the inside out; the last is the host. */
enum { N_KINDS = COLL__WITHIN + 1 };

static const char *const names[N_KINDS] = {"cache", "numa", "package", "host"};

static int32_t part_of(const struct coll__peer *peer, int kind)
{
    return kind < COLL__WITHIN ? peer->within[kind] : 0;
}

/* color[r] = the lowest rank that shares this part with r.  Returns 0 when a
 * rank is in none.  first[host] is the lowest rank of each host. */
static int color_ranks(const struct coll_comm *comm, int kind,
                       const int *first, int *color)
{
    for (int r = 0; r < comm->size; r++) {
        const struct coll__peer *me = &comm->peers[r];
        int q = first[me->host];

        if (part_of(me, kind) < 0)
            return 0;
        while (comm->peers[q].host != me->host ||
               part_of(&comm->peers[q], kind) != part_of(me, kind))
            q++;
        color[r] = q;
    }
    return 1;
}

/* Is this level neither single ranks, nor everybody, nor the one below? */
static int is_level(const int *color, const int *below, int size)
{
    int pairs = 0, n_groups = 0;

    for (int r = 0; r < size; r++) {
        pairs |= color[r] != r;
        n_groups += color[r] == r;
    }
    if (!pairs || n_groups == 1)
        return 0;
    return !below || memcmp(color, below, (size_t)size * sizeof(*color));
}

static void set_price(struct coll__level *level, const char *name,
                      const struct coll__link *link, int is_shared)
{
    snprintf(level->name, sizeof(level->name), "%s", name);
    level->alpha = link->alpha;
    level->beta = link->beta;
    level->share = is_shared ? link->beta : 0; /* one way out of the host */
    level->gap = level->overhead = link->gap > 0 ? link->gap : link->alpha / 4;
    level->once = link->once;
}

/* kinds[l]: what the groups of level l share. */
static void set_prices(struct coll_comm *comm, const int *kinds)
{
    struct coll__view *view = &comm->view;
    int last = view->n_levels - 1;

    view->gamma = GAMMA;
    view->chunk = comm->settings.chunk;
    for (int l = 0; l < last; l++)
        set_price(&view->levels[l], names[kinds[l]], &comm->links[0], 0);
    if (comm->n_hosts > 1)
        set_price(&view->levels[last], "network", &comm->links[1], 1);
    else
        set_price(&view->levels[last], "host", &comm->links[0], 0);
    for (int l = 0; l <= last; l++) /* measured ones are better */
        coll__tune_level(comm->tune, &view->levels[l]);
}

int coll__comm_view_init(struct coll_comm *comm)
{
    const int *color[N_KINDS];
    int kinds[N_KINDS], n = 0, rc;
    size_t size = (size_t)comm->size;
    int *colors = malloc((N_KINDS + 1) * size * sizeof(*colors));
    int *first = colors + N_KINDS * size;

    if (!colors) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (int r = comm->size - 1; r >= 0; r--)
        first[comm->peers[r].host] = r;
    for (int kind = 0; kind < N_KINDS; kind++) {
        int *mine = colors + (size_t)n * size;

        if (!color_ranks(comm, kind, first, mine) ||
            !is_level(mine, n ? color[n - 1] : NULL, comm->size))
            continue;
        kinds[n] = kind;
        color[n++] = mine;
    }
    rc = coll__view_init(&comm->view, comm->size, n + 1, color);
    free(colors);
    if (rc == COLL_OK)
        set_prices(comm, kinds);
    return rc;
}
