/* SPDX-License-Identifier: BSD-3-Clause */
/* rails.c - choose the RDMA network that joins the most hosts, and a process's ports
 * there. */
#include "lib/topo/rails.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <string.h>

/* ---- networks ------------------------------------------------------------ */

static int is_named(const struct coll__carrier_wish *wish)
{
    return wish->devices && *wish->devices && strcmp(wish->devices, "all") != 0;
}

/* FNV-1a; never 0. */
static uint32_t hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ? h : 1;
}

/* Return a port's network as a number; 0 if the port cannot be used. */
static uint32_t fabric_of(const struct coll__nic *nic,
                          const struct coll__carrier_wish *wish)
{
    if (!nic->is_rdma || !*nic->fabric || !wish->may_rdma ||
        !coll__carrier_is_up(nic) ||
        !coll__carrier_is_listed(nic, wish->devices))
        return 0;
    return hash(nic->fabric, is_named(wish) ? strcspn(nic->fabric, " ")
                                            : strlen(nic->fabric));
}

static const struct coll__nic *best_of(const struct coll__nic *nics, int n,
                                       const struct coll__carrier_wish *wish,
                                       uint32_t fabric)
{
    const struct coll__nic *best = NULL;

    for (int i = 0; i < n; i++)
        if (fabric_of(&nics[i], wish) == fabric &&
            (!best || coll__carrier_is_better(&nics[i], best, wish)))
            best = &nics[i];
    return best;
}

static int is_among(const uint32_t *fabrics, int n, uint32_t fabric)
{
    for (int i = 0; i < n; i++)
        if (fabrics[i] == fabric)
            return 1;
    return 0;
}

void coll__rails_fabrics(const struct coll__nic *nics, int n,
                         const struct coll__carrier_wish *wish,
                         uint32_t fabrics[COLL__FABRICS])
{
    memset(fabrics, 0, COLL__FABRICS * sizeof(*fabrics));
    for (int k = 0; k < COLL__FABRICS; k++) {
        const struct coll__nic *best = NULL;

        for (int i = 0; i < n; i++) {
            uint32_t fabric = fabric_of(&nics[i], wish);

            if (fabric && !is_among(fabrics, k, fabric) &&
                (!best || coll__carrier_is_better(&nics[i], best, wish)))
                best = &nics[i];
        }
        if (!best)
            return;
        fabrics[k] = fabric_of(best, wish);
    }
}

int coll__rails_has(const struct coll__peer *peer, uint32_t fabric)
{
    return fabric && is_among(peer->fabrics, COLL__FABRICS, fabric);
}

/* Count the hosts with a rank that has a port on the network, and add up its place in
 * those ranks' lists. */
static int count_hosts(const struct coll__peer *peers, int size,
                       uint32_t fabric, int *badness)
{
    int n = 0;

    *badness = 0;
    for (int r = 0; r < size; r++) {
        int is_first = 1;

        if (!coll__rails_has(&peers[r], fabric))
            continue;
        for (int k = 0; peers[r].fabrics[k] != fabric; k++)
            ++*badness;
        for (int q = r - 1; q >= 0 && is_first; q--)
            is_first = peers[q].host != peers[r].host ||
                       !coll__rails_has(&peers[q], fabric);
        n += is_first;
    }
    return n;
}

/* Look at each network once, where it occurs first. */
static int is_met_first(const struct coll__peer *peers, int rank,
                        uint32_t fabric)
{
    for (int r = 0; r < rank; r++)
        if (coll__rails_has(&peers[r], fabric))
            return 0;
    return 1;
}

uint32_t coll__rails_common(const struct coll__peer *peers, int size,
                            int *n_hosts)
{
    uint32_t common = 0;
    int least = 0, badness;

    *n_hosts = 0;
    for (int r = 0; r < size; r++)
        for (int k = 0; k < COLL__FABRICS && peers[r].fabrics[k]; k++) {
            uint32_t fabric = peers[r].fabrics[k];
            int n;

            if (!is_met_first(peers, r, fabric))
                continue;
            n = count_hosts(peers, size, fabric, &badness);
            if (n < *n_hosts || (n == *n_hosts && badness >= least))
                continue;
            common = fabric;
            *n_hosts = n;
            least = badness;
        }
    return common;
}

/* ---- ports --------------------------------------------------------------- */

/* Return why a port is not used beside the best one; NULL if it is used. */
static const char *why_not(const struct coll__nic *nic,
                           const struct coll__nic *best,
                           const struct coll__carrier_wish *wish,
                           uint32_t fabric)
{
    if (!coll__carrier_is_listed(nic, wish->devices))
        return "not in UCX_NET_DEVICES";
    if (!coll__carrier_is_up(nic))
        return nic->port_state;
    if (!*nic->fabric)
        return "of a kind that UCX does not use, or without an address";
    if (fabric_of(nic, wish) != fabric)
        return nic->fabric;
    if (is_named(wish))
        return NULL; /* as the user wants it */
    if (best->gbits > nic->gbits)
        return "slower";
    return coll__carrier_is_better(best, nic, wish) ? "farther away" : NULL;
}

static void add(struct coll__rails *rails, const struct coll__nic *nic)
{
    size_t at = strlen(rails->devices);

    snprintf(rails->devices + at, sizeof(rails->devices) - at, "%s%s:%d",
             at ? "," : "", nic->name, nic->port);
    rails->n++;
    rails->is_soft |= !*nic->bus;
    rails->is_others |= strncmp(nic->name, "mlx", 3) != 0;
}

static void say_not(struct coll__rails *rails, const struct coll__nic *nic,
                    const char *why)
{
    size_t at = strlen(rails->why);

    snprintf(rails->why + at, sizeof(rails->why) - at, "; not %s:%d: %s",
             nic->name, nic->port, why);
}

void coll__rails_choose(const struct coll__nic *nics, int n,
                        const struct coll__carrier_wish *wish, uint32_t fabric,
                        struct coll__rails *rails)
{
    const struct coll__nic *best =
        fabric ? best_of(nics, n, wish, fabric) : NULL;
    char which[64] = "there is none";

    *rails = (struct coll__rails){.n = 0};
    if (!fabric)
        return;
    if (best)
        add(rails, best);
    for (int i = 0; i < n && best; i++)
        if (&nics[i] != best && nics[i].is_rdma && rails->n < COLL__RAILS &&
            !why_not(&nics[i], best, wish, fabric))
            add(rails, &nics[i]);
    if (best)
        coll__carrier_text(best, which, sizeof(which));
    snprintf(rails->why, sizeof(rails->why), "by %s (%s) on %s",
             best ? rails->devices : "no RDMA port", which,
             best ? best->fabric : "the network that joins the most hosts");
    for (int i = 0; i < n; i++) {
        const char *why = why_not(&nics[i], best, wish, fabric);

        if (nics[i].is_rdma && why)
            say_not(rails, &nics[i], why);
    }
}
