/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_net.c - networks made by rule: their links and routes by arithmetic.
 *
 * Fat tree: all switches of one level below a common switch are modelled as one switch,
 * and the cables between two levels as one wide link, as if routing spread the messages
 * evenly.  Dragonfly: within a group each router is joined with each other router, and
 * any two groups are joined by the same number of cables.  The sender's router decides
 * which of these cables a message takes; there is at most one hop within each group.
 * The cables to the next group leave from a group's last routers, and cables from the
 * previous group arrive at its first routers.  Torus: a message goes through one
 * dimension after the other, each time the shorter way round; if both ways are equal,
 * in + direction.
 */
#include "tools/sim/fabric_int.h"

#include <stdio.h>
#include <string.h>

#define TWO_WAYS 2

/* ---- fat tree ------------------------------------------------------------ */

/* Return the edge switch of a NIC; with rails, each NIC of a host has its own. */
static int edge_switch(const struct net *net, const struct net_end *end)
{
    if (net->is_rails)
        return end->host / net->down[0] * net->n_rails + end->local;
    return end->nic / net->down[0];
}

static int tree_route(const struct net *net, const struct net_end *from,
                      const struct net_end *to, int *links, int n)
{
    int a = edge_switch(net, from), b = edge_switch(net, to);
    int back[FABRIC_MAX_TREE], n_back = 0;

    for (int l = 0; a != b; a /= net->down[l], b /= net->down[l]) {
        links[n++] = net->first[l] + TWO_WAYS * a;
        back[n_back++] = net->first[l] + TWO_WAYS * b + 1;
        l++;
    }
    while (n_back--)
        links[n++] = back[n_back];
    return n;
}

static int tree_level(const struct net *net, int link)
{
    int l = 0;

    while (l < net->n_levels - 2 && link >= net->first[l + 1])
        l++;
    return l;
}

static const char *tree_finish(struct net *net, long long n_ends, char *why,
                               size_t len)
{
    long long room = 1, links = 0;
    int last = net->n_levels - 1;

    for (int l = 0; l < net->n_levels && room < FABRIC_MAX_LINKS; l++)
        room *= net->down[l];
    snprintf(why, len,
             "the fat tree has %lld ports for network cards, the hosts need "
             "%lld; raise 'down'",
             room, n_ends);
    if (room < n_ends)
        return why;
    room = n_ends;
    for (int l = 0; l < last; l++) {
        room = (room + net->down[l] - 1) / net->down[l];
        net->n_groups[l] = (int)room;
        net->first[l] = (int)links;
        links += TWO_WAYS * room;
    }
    net->n_links = (int)links;
    return NULL;
}

/* ---- dragonfly ----------------------------------------------------------- */

/* Links: local ones [group][router][router], then global ones
 * [group][port of the group], each from that side. */
static int global_link(const struct net *net, int group, int port)
{
    return net->groups * net->routers * net->routers +
           group * net->routers * net->globals + port;
}

/* Hop from one router to another of its group. */
static int local_hop(const struct net *net, int from, int to, int *links, int n)
{
    if (from != to)
        links[n++] = from * net->routers + to % net->routers;
    return n;
}

static int dragonfly_route(const struct net *net, const struct net_end *from,
                           const struct net_end *to, int *links, int n)
{
    int a = from->nic / net->hosts, b = to->nic / net->hosts;
    int ga = a / net->routers, gb = b / net->routers, others = net->groups - 1;
    int cable, out, in;

    if (ga == gb)
        return local_hop(net, a, b, links, n);
    cable = a % net->routers % net->n_between * others;
    out = (ga - gb - 1 + net->groups) % net->groups + cable;
    in = (gb - ga - 1 + net->groups) % net->groups + cable;
    n = local_hop(net, a, ga * net->routers + out / net->globals, links, n);
    links[n++] = global_link(net, ga, out);
    return local_hop(net, gb * net->routers + in / net->globals, b, links, n);
}

static const char *dragonfly_finish(struct net *net, long long n_ends,
                                    char *why, size_t len)
{
    long long g = net->groups, a = net->routers, h = net->globals;
    long long room = g * a * net->hosts;

    snprintf(why, len,
             "the dragonfly has %lld ports for network cards, the hosts need "
             "%lld; raise 'groups', 'routers' or 'hosts'",
             room, n_ends);
    if (room < n_ends)
        return why;
    snprintf(why, len,
             "%lld global cables of a group do not reach the %lld other "
             "groups; raise 'global' or lower 'groups'",
             a * h, g - 1);
    if (a * h < g - 1)
        return why;
    snprintf(why, len, "the dragonfly has too many links; make it smaller");
    if (g * a * (a + h) > FABRIC_MAX_LINKS)
        return why;
    net->n_between = g > 1 ? (int)(a * h / (g - 1)) : 0;
    net->n_links = (int)(g * a * (a + h));
    return NULL;
}

/* ---- torus --------------------------------------------------------------- */

/* Links: [node][dimension][+, -]. */
static int torus_route(const struct net *net, const struct net_end *from,
                       const struct net_end *to, int *links, int n)
{
    int node = from->host, stride = 1;

    for (int d = 0; d < 3; d++) {
        int size = net->dims[d], at = from->host / stride % size;
        int ahead = (to->host / stride % size - at + size) % size;
        int way = ahead > size - ahead; /* 1: the - direction */

        for (int hops = way ? size - ahead : ahead; hops; hops--) {
            int next = (at + (way ? size - 1 : 1)) % size;

            links[n++] = (node * 3 + d) * TWO_WAYS + way;
            node += (next - at) * stride;
            at = next;
        }
        stride *= size;
    }
    return n;
}

static const char *torus_finish(struct net *net, int n_hosts, char *why,
                                size_t len)
{
    long long nodes = (long long)net->dims[0] * net->dims[1] * net->dims[2];
    int hops = net->dims[0] / 2 + net->dims[1] / 2 + net->dims[2] / 2;

    snprintf(why, len, "the torus has %lld places, there are %d hosts; make it "
                       "larger",
             nodes, n_hosts);
    if (nodes < n_hosts)
        return why;
    snprintf(why, len, "routes of %d hops in the torus are longer than %d; "
                       "give it more even sides",
             hops, COLL__ROUTE_MAX / 2);
    if (hops > COLL__ROUTE_MAX / 2)
        return why;
    snprintf(why, len, "the torus has more than %d places; make it smaller",
             FABRIC_MAX_SEATS);
    if (nodes > FABRIC_MAX_SEATS)
        return why;
    net->n_links = (int)nodes * 3 * TWO_WAYS;
    return NULL;
}

/* ---- all ----------------------------------------------------------------- */

const char *coll__net_finish(struct net *net, const struct coll__fabric *fabric,
                             char *why, size_t len)
{
    long long n_ends = fabric->n_nics;

    switch (net->kind) {
    case NET_NONE:
    case NET_SWITCH:
        return NULL;
    case NET_FAT_TREE:
        for (int k = 0; k < fabric->n_kinds; k++)
            if (fabric->kinds[k].n_nics > net->n_rails)
                net->n_rails = fabric->kinds[k].n_nics;
        if (net->is_rails)
            n_ends = (fabric->n_hosts + net->down[0] - 1LL) / net->down[0] *
                     net->down[0] * net->n_rails;
        return tree_finish(net, n_ends, why, len);
    case NET_DRAGONFLY:
        return dragonfly_finish(net, n_ends, why, len);
    case NET_TORUS:
        return torus_finish(net, fabric->n_hosts, why, len);
    case NET_LINKS:
        return coll__attach_finish(net, fabric, why, len);
    }
    return NULL;
}

int coll__net_route(const struct net *net, const struct net_end *from,
                    const struct net_end *to, int *links, int n)
{
    int n_path;

    switch (net->kind) {
    case NET_FAT_TREE:
        return tree_route(net, from, to, links, n);
    case NET_DRAGONFLY:
        return dragonfly_route(net, from, to, links, n);
    case NET_TORUS:
        return torus_route(net, from, to, links, n);
    case NET_LINKS:
        n_path = coll__graph_path(&net->graph, net->attach[from->nic],
                                  net->attach[to->nic], links + n);
        return n_path < 0 ? n : n + n_path;
    case NET_NONE:
    case NET_SWITCH:
        break;
    }
    return n;
}

struct coll__fabric_link coll__net_link(const struct net *net, int link)
{
    struct coll__fabric_link price = {net->latency, net->beta, net->beta};
    const struct graph_edge *edge;

    if (net->kind == NET_FAT_TREE) {
        price.share = net->beta / net->up[tree_level(net, link)];
    } else if (net->kind == NET_DRAGONFLY &&
               link >= global_link(net, 0, 0)) {
        price = (struct coll__fabric_link){net->global_latency,
                                           net->global_beta, net->global_beta};
    } else if (net->kind == NET_LINKS) {
        edge = &net->graph.edges[link / TWO_WAYS];
        price = (struct coll__fabric_link){edge->latency, edge->beta,
                                           edge->share};
    }
    return price;
}

static void tree_link_name(const struct net *net, int link,
                           char name[COLL__LINK_NAME])
{
    int l = tree_level(net, link);

    link -= net->first[l];
    snprintf(name, COLL__LINK_NAME, "level %d: switch %d %s", l,
             link / TWO_WAYS, link & 1 ? "from above" : "up");
}

void coll__net_link_name(const struct net *net, int link,
                         char name[COLL__LINK_NAME])
{
    int first = global_link(net, 0, 0), a = net->routers;

    if (net->kind == NET_FAT_TREE)
        tree_link_name(net, link, name);
    else if (net->kind == NET_TORUS)
        snprintf(name, COLL__LINK_NAME, "torus: place %d to %c%c",
                 link / (3 * TWO_WAYS), link & 1 ? '-' : '+',
                 "xyz"[link / TWO_WAYS % 3]);
    else if (net->kind == NET_LINKS)
        snprintf(name, COLL__LINK_NAME, "%s to %s",
                 net->graph.parts[coll__edge_from(&net->graph, link)].name,
                 net->graph.parts[coll__edge_from(&net->graph, link ^ 1)].name);
    else if (link >= first)
        snprintf(name, COLL__LINK_NAME, "group %d: global port %d",
                 (link - first) / (a * net->globals),
                 (link - first) % (a * net->globals));
    else
        snprintf(name, COLL__LINK_NAME, "group %d: router %d to %d",
                 link / (a * a), link / a % a, link % a);
}

/* ---- levels -------------------------------------------------------------- */

int coll__net_n_levels(const struct net *net)
{
    switch (net->kind) {
    case NET_FAT_TREE:
        return net->n_levels - 1;
    case NET_DRAGONFLY:
    case NET_TORUS:
        return 2;
    case NET_LINKS:
        return 1;
    case NET_NONE:
    case NET_SWITCH:
        break;
    }
    return 0;
}

const char *coll__net_level_name(const struct net *net, int level)
{
    static const char *const tree[] = {"edge", "pod", "pod2", "pod3",
                                       "pod4", "pod5", "pod6"};

    switch (net->kind) {
    case NET_FAT_TREE:
        return tree[level];
    case NET_DRAGONFLY:
        return level ? "group" : "router";
    case NET_TORUS:
        return level ? "plane" : "line";
    default:
        return "switch";
    }
}

/* With rails, the edge switches of all rails of the same hosts are one group. */
int coll__net_group(const struct net *net, int level,
                    const struct net_end *end)
{
    int group;

    switch (net->kind) {
    case NET_FAT_TREE:
        group = edge_switch(net, end);
        if (net->is_rails && !level)
            return end->host / net->down[0];
        for (int l = 1; l <= level; l++)
            group /= net->down[l];
        return group;
    case NET_DRAGONFLY:
        group = end->nic / net->hosts;
        return level ? group / net->routers : group;
    case NET_TORUS:
        group = end->host / net->dims[0];
        return level ? group / net->dims[1] : group;
    case NET_LINKS:
        return net->attach[end->nic];
    default:
        return 0;
    }
}
