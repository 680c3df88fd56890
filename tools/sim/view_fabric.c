/* SPDX-License-Identifier: BSD-3-Clause */
/* view_fabric.c - the view of a fabric, for plan builders and prices: the fabric's levels
 * and its ring. */
#include "tools/sim/sim.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

static int no_memory(int nranks)
{
    log_error("plan", "no memory for a view of %d ranks", nranks);
    return COLL_ERR_NOMEM;
}

/* Replace the ring by groups with the fabric's ring. */
static int set_ring(struct coll__view *view, const struct coll__fabric *fabric,
                    const int *seat)
{
    int n = view->nranks, *ring = malloc((size_t)n * sizeof(*ring));
    int rc = ring ? coll__fabric_ring(fabric, n, seat, ring) : no_memory(n);

    if (rc == COLL_OK)
        rc = coll__view_set_ring(view, ring);
    free(ring);
    return rc;
}

static void set_prices(struct coll__view *view,
                       const struct coll__fabric *fabric,
                       const struct coll__fabric_levels *levels)
{
    for (int l = 0; l < levels->n_levels; l++) {
        const struct coll__fabric_price *price = &levels->prices[l];
        struct coll__level *level = &view->levels[l];

        snprintf(level->name, sizeof(level->name), "%s", price->name);
        level->alpha = price->alpha;
        level->beta = price->beta;
        level->share = price->share;
        level->gap = price->gap;
        level->spread = price->spread;
        level->overhead = coll__fabric_overhead(fabric);
    }
}

static int make_view(struct coll__view *view, const struct coll__fabric *fabric,
                     const int *seat, int nranks)
{
    struct coll__fabric_levels levels;
    int rc = coll__fabric_levels_init(fabric, nranks, seat, &levels);

    if (rc)
        return rc;
    rc = coll__view_init(view, nranks, levels.n_levels,
                         (const int *const *)levels.color);
    if (rc == COLL_OK)
        set_prices(view, fabric, &levels);
    coll__fabric_levels_fini(&levels);
    return rc;
}

int coll__view_of_fabric(struct coll__view *view,
                         const struct coll__fabric *fabric, int nranks,
                         enum coll__placement placement, size_t chunk)
{
    int *seat = malloc((size_t)nranks * sizeof(*seat));
    int rc = seat ? coll__fabric_seats(fabric, nranks, placement, seat)
                  : no_memory(nranks);

    if (rc == COLL_OK)
        rc = make_view(view, fabric, seat, nranks);
    if (rc == COLL_OK) {
        view->gamma = coll__fabric_gamma(fabric);
        view->chunk = chunk;
        rc = set_ring(view, fabric, seat);
        if (rc)
            coll__view_fini(view);
    }
    free(seat);
    return rc;
}
