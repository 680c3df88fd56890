/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_ring.c - rings and roots of ranks on a fabric, made of the orders of seats
 * within each host (order.c, order_ring.c). */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

/* The used seats of one host, in order; and those of the host before it, with the ring
 * through them, which is reused: most hosts are alike. */
struct host_ring {
    const struct graph *kind;
    int n, seats[FABRIC_MAX_PARTS], ring[FABRIC_MAX_PARTS];
};

static int order_host(struct host_ring *host, struct host_ring *last,
                      int is_open)
{
    size_t len = (size_t)host->n * sizeof(int);
    int rc;

    if (host->kind != last->kind || host->n != last->n ||
        memcmp(host->seats, last->seats, len)) {
        memcpy(last, host, sizeof(*host));
        memcpy(last->ring, host->seats, len);
        rc = coll__order_ring(host->kind, is_open, last->ring, host->n);
        if (rc)
            return rc;
    }
    memcpy(host->ring, last->ring, len);
    return COLL_OK;
}

/* Ranks on their seats. */
struct seated {
    const struct coll__fabric *fabric;
    int nranks;
    const int *seat; /* [nranks] */
    int *sorted;     /* [nranks]: the ranks in order of their seats */
};

/* Return the host of the i-th rank in order of seats. */
static int host_of(const struct seated *s, int i)
{
    return coll__fabric_host(s->fabric, s->seat[s->sorted[i]]);
}

/* Read the ranks of one host, from `first` on in the order of seats; returns their
 * number. */
static int read_host(const struct seated *s, int first, struct host_ring *host)
{
    host->n = 0;
    for (int i = first; i < s->nranks; i++) {
        struct fabric_place at =
            coll__fabric_place(s->fabric, s->seat[s->sorted[i]]);

        if (at.host != host_of(s, first))
            break;
        host->kind = at.kind;
        host->seats[host->n++] = at.local;
    }
    return host->n;
}

static int order_all(const struct seated *s, struct host_ring hosts[2],
                     int *ring)
{
    int is_open = host_of(s, 0) != host_of(s, s->nranks - 1);
    int rc = COLL_OK;

    for (int i = 0; i < s->nranks && rc == COLL_OK; i += hosts[0].n) {
        int n = read_host(s, i, &hosts[0]);

        rc = order_host(&hosts[0], &hosts[1], is_open);
        for (int j = 0, k = 0; j < n; j++) { /* the rank in that seat */
            for (k = 0; hosts[0].seats[k] != hosts[0].ring[j];)
                k++;
            ring[i + j] = s->sorted[i + k];
        }
    }
    return rc;
}

int coll__fabric_ring(const struct coll__fabric *fabric, int nranks,
                      const int *seat, int *ring)
{
    struct seated ranks = {fabric, nranks, seat,
                           malloc((size_t)nranks * sizeof(int))};
    struct host_ring *hosts = calloc(2, sizeof(*hosts));
    int rc = COLL_ERR_NOMEM;

    if (ranks.sorted && hosts) {
        rc = coll__fabric_sort(fabric, nranks, seat, ranks.sorted);
        if (rc == COLL_OK)
            rc = order_all(&ranks, hosts, ring);
    }
    if (rc == COLL_ERR_NOMEM)
        log_error("topo", "no memory left for a ring of %d ranks; free some "
                          "memory",
                  nranks);
    free(ranks.sorted);
    free(hosts);
    return rc;
}

int coll__fabric_root(const struct coll__fabric *fabric, const int *seat,
                      const int *ranks, int n)
{
    int best = 0;
    struct coll__seat_reach least;

    for (int i = 0; i < n; i++) {
        struct fabric_place at = coll__fabric_place(fabric, seat[ranks[i]]);
        struct coll__seat_reach here = coll__order_reach(at.kind, at.local);

        if (!i || coll__order_compare(&here, &least) < 0) {
            least = here;
            best = i;
        }
    }
    return n ? ranks[best] : -1;
}
