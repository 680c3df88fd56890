/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_route.c - the links from seat to seat: within a host its best path,
 * between hosts from NIC to NIC by the network's rule.
 */
#include "tools/sim/fabric_int.h"

/* Number the edges of a path as links of the whole fabric. */
static int add_path(const struct fabric_place *at, int from, int to, int *links,
                    int n)
{
    int path[COLL__ROUTE_MAX], n_path;
    int first = coll__host_link(at) + 2 * (at->kind->n_seats + at->kind->n_nics);

    n_path = coll__graph_path(at->kind, from, to, path);
    for (int i = 0; i < n_path && n < COLL__ROUTE_MAX; i++)
        links[n++] = first + path[i];
    return n;
}

static int nic_link(const struct fabric_place *at, int nic)
{
    return coll__host_link(at) + 2 * (at->kind->n_seats + nic);
}

/* Route out of one host through the seat's NIC, and into the other host through the NIC
 * of the other seat. */
static int cross(const struct coll__fabric *fabric,
                 const struct fabric_place *from, const struct fabric_place *to,
                 int *links, int n)
{
    int out = from->kind->nic[from->local], in = to->kind->nic[to->local];
    struct net_end a = {coll__host_nic(from) + out, from->host, out};
    struct net_end b = {coll__host_nic(to) + in, to->host, in};
    int first;

    n = add_path(from, from->kind->seats[from->local], from->kind->nics[out],
                 links, n);
    links[n++] = nic_link(from, out);
    first = n;
    n = coll__net_route(&fabric->net, &a, &b, links, n);
    for (int i = first; i < n; i++)
        links[i] += fabric->net_link;
    links[n++] = nic_link(to, in) + 1;
    return add_path(to, to->kind->nics[in], to->kind->seats[to->local], links,
                    n);
}

int coll__fabric_route(const struct coll__fabric *fabric, int from, int to,
                       int *links)
{
    struct fabric_place a = coll__fabric_place(fabric, from);
    struct fabric_place b = coll__fabric_place(fabric, to);
    int n = 0;

    if (from == to)
        return 0;
    links[n++] = coll__host_link(&a) + 2 * a.local;
    if (a.host == b.host)
        n = add_path(&a, a.kind->seats[a.local], b.kind->seats[b.local], links,
                     n);
    else
        n = cross(fabric, &a, &b, links, n);
    links[n++] = coll__host_link(&b) + 2 * b.local + 1;
    return n;
}
