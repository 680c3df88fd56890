/* SPDX-License-Identifier: BSD-3-Clause */
/* prices.c - one price of each kind of link, the same on all ranks.
 *
 * Each rank knows what its transports say of their links, which device it uses to
 * reach other hosts, and the distances within its own host.  Hosts may differ.  The
 * ranks exchange this, and every rank takes the most expensive link, so that all choose
 * the same algorithms.  Messages that leave a host at the same time share the devices
 * of its ranks: eight ranks on four cards have the bandwidth of four cards.
 *
 * If nobody knows the speed of a link between hosts, two ranks measure it (the first
 * rank with such a link, and the first rank of another host) while the others wait for
 * the result.  A communicator made from another one inherits what was measured.
 */
#include "lib/comm/prices.h"
#include "lib/comm/comm.h"
#include "lib/comm/links.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "lib/price/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* devices of one host's ranks; beyond this number they are not told apart */
#define MAX_DEVICES 16

/* ---- what a rank says ---------------------------------------------------- */

void coll__link_dearer(struct coll__link *worst, const struct coll__link *link)
{
    int is_first = worst->alpha <= 0;

    if (link->alpha <= 0) /* nobody has such a link */
        return;
    if (is_first || link->beta > worst->beta)
        memcpy(worst->via, link->via, sizeof(worst->via));
    worst->once =
        is_first || link->once < worst->once ? link->once : worst->once;
    worst->is_known =
        is_first ? link->is_known : worst->is_known && link->is_known;
    worst->alpha = max_double(worst->alpha, link->alpha);
    worst->beta = max_double(worst->beta, link->beta);
    worst->gap = max_double(worst->gap, link->gap);
    worst->share = max_double(worst->share, link->share);
}

/* FNV-1a; 0 for an empty text. */
static uint32_t digest(const char *text)
{
    uint32_t hash = 2166136261u;

    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return *text ? hash | 1 : 0;
}

void coll__comm_offer(const struct coll_comm *comm, struct coll__offer *offer)
{
    const struct coll__link *near = &comm->links.dearest[0],
                            *far = &comm->links.dearest[1];

    *offer = (struct coll__offer){
        .near = {near->alpha, near->beta, near->gap, near->once},
        .far = {far->alpha, far->beta, far->gap, far->share},
        .numa = (float)comm->links.inside.numa,
        .package = (float)comm->links.inside.package,
        .via = digest(far->via),
        .is_known = far->is_known,
    };
}

/* ---- what all make of it ------------------------------------------------- */

/* The devices that the ranks of one host use. */
struct way_out {
    uint32_t via[MAX_DEVICES];
    int n;
    double speed; /* of all, bytes a second */
};

static void add_device(struct way_out *out, const struct coll__offer *offer)
{
    if (offer->far[0] <= 0 || offer->far[3] <= 0 || out->n == MAX_DEVICES)
        return;
    for (int i = 0; i < out->n; i++)
        if (out->via[i] == offer->via)
            return;
    out->via[out->n++] = offer->via;
    out->speed += 1 / offer->far[3];
}

/* Return the seconds per byte of the host whose devices together are slowest, or -1 if
 * memory is short. */
static double narrowest(const struct coll_comm *comm,
                        const struct coll__offer *offers)
{
    struct way_out *outs = calloc((size_t)comm->n_hosts, sizeof(*outs));
    double share = 0;

    if (!outs)
        return -1;
    for (int r = 0; r < comm->size; r++)
        add_device(&outs[comm->peers[r].host], &offers[r]);
    for (int h = 0; h < comm->n_hosts; h++)
        if (outs[h].n)
            share = max_double(share, 1 / outs[h].speed);
    free(outs);
    return share;
}

/* Take the numbers of a link, but keep the device's name, which is this rank's own. */
static void take_one(struct coll_comm *comm, const struct coll__offer *offer)
{
    const double *n = offer->near, *f = offer->far;
    struct coll__link near = {n[0], n[1], n[2], n[3], .is_known = 1};
    struct coll__link far = {f[0], f[1], f[2], .is_known = offer->is_known};
    struct coll__inside inside = {offer->numa, offer->package};

    coll__link_dearer(&comm->links.dearest[0], &near);
    coll__link_dearer(&comm->links.dearest[1], &far);
    coll__inside_widen(&comm->links.inside, &inside);
}

int coll__comm_take_offers(struct coll_comm *comm,
                           const struct coll__offer *offers)
{
    char via[sizeof(comm->links.dearest[1].via)];
    double share = narrowest(comm, offers);
    int unknown = -1;

    if (share < 0) {
        log_error("comm", "no memory for %d hosts", comm->n_hosts);
        return COLL_ERR_NOMEM;
    }
    memcpy(via, comm->links.dearest[1].via, sizeof(via));
    memset(comm->links.dearest, 0, sizeof(comm->links.dearest));
    comm->links.inside = (struct coll__inside){0};
    for (int r = 0; r < comm->size; r++) {
        take_one(comm, &offers[r]);
        if (unknown < 0 && offers[r].far[0] > 0 && !offers[r].is_known)
            unknown = r;
    }
    comm->links.dearest[1].share = share;
    memcpy(comm->links.dearest[1].via, via, sizeof(via));
    return unknown;
}

/* ---- measuring ----------------------------------------------------------- */

/* Rank a and the first rank of another host measure; all ranks get the result. */
static int measure(struct coll_comm *comm, int a)
{
    struct coll__measured mine = {0}, *all;
    int b = 0, rc = COLL_OK;

    while (comm->peers[b].host == comm->peers[a].host)
        b++;
    if (comm->rank == a || comm->rank == b)
        rc = coll__comm_measure(comm, a, b, &mine);
    if (rc)
        return rc;
    all = coll__comm_exchange_new(comm, &mine, sizeof(mine), &rc);
    if (!all)
        return rc;
    comm->links.measured = all[a];
    free(all);
    return COLL_OK;
}

/* Put the measured price in place of the guesses. */
static int replace_guesses(struct coll_comm *comm,
                           const struct coll__offer *offers)
{
    const struct coll__measured *m = &comm->links.measured;
    size_t n = (size_t)comm->size;
    struct coll__offer *all = malloc(n * sizeof(*all));
    int unknown;

    if (!all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    memcpy(all, offers, n * sizeof(*all));
    for (size_t r = 0; r < n; r++)
        if (all[r].far[0] > 0 && !all[r].is_known) {
            all[r].is_known = 1;
            memcpy(all[r].far, (double[]){m->alpha, m->beta, m->gap, m->beta},
                   sizeof(all[r].far));
        }
    unknown = coll__comm_take_offers(comm, all);
    if (comm->links.dearest[1].beta > 0) /* a slower one is not that one */
        comm->links.dearest[1].both =
            m->both * m->beta / comm->links.dearest[1].beta;
    free(all);
    return unknown < -1 ? unknown : COLL_OK;
}

/* Does the tuning file have a price for the network? */
static int is_tuned(const struct coll_comm *comm)
{
    struct coll__level network = {.name = "network"};

    return coll__tune_level(comm->tune, &network);
}

int coll__comm_prices_agree(struct coll_comm *comm,
                            const struct coll__offer *offers,
                            const struct coll_comm *parent)
{
    int unknown = coll__comm_take_offers(comm, offers), rc = COLL_OK;

    if (unknown < -1)
        return unknown;
    if (unknown < 0 || is_tuned(comm))
        return COLL_OK;
    if (parent && parent->links.measured.alpha > 0)
        comm->links.measured = parent->links.measured;
    else
        rc = measure(comm, unknown);
    return rc ? rc : replace_guesses(comm, offers);
}
