/* SPDX-License-Identifier: BSD-3-Clause */
/* net_own.c - this host's addresses, the most promising first.
 *
 * Many hosts have addresses that lead nowhere, or to the same bridge on each host
 * (172.17.0.1 of docker0).  Only trying shows which ones work, so the list has as many as
 * fit.  Their order: the default route's, then those of network cards, of interfaces
 * built upon cards, and of bridges.
 */
#include "lib/net/net.h"
#include "lib/net/net_addr.h"
#include "lib/util/param.h"
#include "lib/util/read.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_OWN 64        /* most addresses that are considered */
#define MOST_LINK_LOCAL 2 /* link-local addresses, if there are no others */

int coll__net_wants(int family)
{
    const char *wish = coll__param_text(PARAM_NET_FAMILY);

    if (!strcmp(wish, "ip4"))
        return family == 4;
    return strcmp(wish, "ip6") != 0 || family == 6;
}

/* ---- interfaces ---------------------------------------------------------- */

/* Find the address that a socket of ours is bound to; 0 or -1. */
static int bound_addr(int fd, struct coll__addr *bound)
{
    struct sockaddr_storage sock = {0};
    socklen_t len = sizeof(sock);

    return getsockname(fd, (struct sockaddr *)&sock, &len)
               ? -1
               : coll__addr_from_sock((struct sockaddr *)&sock, bound);
}

static int is_same(const struct coll__addr *a, const struct coll__addr *b)
{
    return a->family == b->family && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

/* The interface that has the address; "" none. */
static void name_of(const struct coll__addr *addr,
                    char name[COLL__INTERFACE_NAME])
{
    struct coll__addr own;
    struct ifaddrs *list;

    if (getifaddrs(&list))
        return;
    for (const struct ifaddrs *i = list; i && !*name; i = i->ifa_next)
        if (i->ifa_addr && !coll__addr_from_sock(i->ifa_addr, &own) &&
            is_same(&own, addr))
            snprintf(name, COLL__INTERFACE_NAME, "%s", i->ifa_name);
    freeifaddrs(list);
}

/* Connect a datagram socket: the kernel then chooses its own address by the route. */
void coll__net_interface_to(const struct coll__addr *to,
                            char name[COLL__INTERFACE_NAME])
{
    struct coll__addr from, addr = *to;
    struct sockaddr_storage sock;
    socklen_t len;
    int fd;

    coll__net_find_scope(&addr);
    len = coll__addr_to_sock(&addr, &sock);
    fd = socket(sock.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *name = '\0';
    if (fd < 0)
        return;
    if (!connect(fd, (struct sockaddr *)&sock, len) && !bound_addr(fd, &from))
        name_of(&from, name);
    close(fd);
}

static int has(const char *name, const char *what)
{
    char path[128];

    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, what);
    return !access(path, F_OK);
}

/* Return the interface's speed in Mbit/s; 0: not known. */
static long speed_of(const char *name)
{
    char dir[128];
    long speed;

    snprintf(dir, sizeof(dir), "/sys/class/net/%s", name);
    speed = coll__read_number(dir, "speed", 0);
    return speed > 0 ? speed : 0;
}

int coll__net_are_alike(const char *a, const char *b)
{
    return strcmp(a, b) != 0 && !has(a, "bridge") && !has(b, "bridge") &&
           has(a, "device") == has(b, "device") && speed_of(a) &&
           speed_of(a) == speed_of(b);
}

int coll__net_count_alike(const struct coll__addr *addrs, int n)
{
    char names[COLL__MAX_ADDRS][COLL__INTERFACE_NAME] = {""};
    int i = 0;

    for (; i < n && addrs[i].family == addrs[0].family; i++) {
        name_of(&addrs[i], names[i]);
        for (int k = 0; k < i; k++)
            if (!coll__net_are_alike(names[k], names[i]))
                return i;
    }
    return i > 1 ? i : 1;
}

/* Return how unlikely it is that others can connect by this interface. */
static int rank_of(const char *name, const char *default_route)
{
    if (!strcmp(name, default_route))
        return 0;
    if (has(name, "device"))
        return 1;
    return has(name, "bridge") ? 3 : 2;
}

/* ---- addresses ----------------------------------------------------------- */

struct own {
    struct coll__addr addr;
    int rank, order;
};

enum kind { ROUTED, LINK_LOCAL, LOOPBACK };

/* Another host's link-local address needs an interface, whatever COLL_NET_FAMILY is. */
static int is_of_use(const struct ifaddrs *i, const struct coll__addr *addr,
                     enum kind wanted)
{
    enum kind kind = i->ifa_flags & IFF_LOOPBACK      ? LOOPBACK
                     : coll__addr_is_link_local(addr) ? LINK_LOCAL
                                                      : ROUTED;

    return (i->ifa_flags & IFF_UP) && kind == wanted &&
           (kind == LINK_LOCAL || coll__net_wants(addr->family));
}

static int by_rank(const void *a, const void *b)
{
    const struct own *x = a, *y = b;

    if (x->addr.family != y->addr.family)
        return x->addr.family - y->addr.family;
    return x->rank != y->rank ? x->rank - y->rank : x->order - y->order;
}

/* List the addresses of a kind, IPv4 first. */
static int list_own(const struct ifaddrs *list, enum kind kind, int has_six,
                    struct own own[MAX_OWN])
{
    static const struct coll__addr somewhere = {.ip = {8, 8, 8, 8},
                                                .family = 4};
    char route[COLL__INTERFACE_NAME];
    int n = 0;

    coll__net_interface_to(&somewhere, route);
    for (const struct ifaddrs *i = list; i && n < MAX_OWN; i = i->ifa_next) {
        struct coll__addr addr;

        if (!i->ifa_addr || coll__addr_from_sock(i->ifa_addr, &addr) ||
            !is_of_use(i, &addr, kind) || (addr.family == 6 && !has_six))
            continue;
        coll__net_set_port(&addr, 0);
        own[n] = (struct own){addr, rank_of(i->ifa_name, route), n};
        n++;
    }
    qsort(own, (size_t)n, sizeof(*own), by_rank);
    return n;
}

int coll__net_is_own(const struct coll__addr *addr)
{
    struct coll__addr own;
    struct ifaddrs *list;
    int is_own = coll__net_is_loopback(addr);

    if (is_own || getifaddrs(&list))
        return is_own;
    for (const struct ifaddrs *i = list; i && !is_own; i = i->ifa_next)
        is_own = i->ifa_addr && !coll__addr_from_sock(i->ifa_addr, &own) &&
                 is_same(&own, addr);
    freeifaddrs(list);
    return is_own;
}

/* Choose an interface for *addr: COLL_NET_INTERFACE, the one that has this address, or
 * the likeliest that has a link-local one; 0 if there is none. */
static uint32_t find_interface(const struct ifaddrs *list,
                               const struct coll__addr *addr)
{
    const char *name = coll__param_text(PARAM_NET_INTERFACE);
    struct own own[MAX_OWN];
    int n = list_own(list, LINK_LOCAL, 1, own), best = 0;

    if (*name)
        return if_nametoindex(name);
    for (int i = n - 1; i >= 0; i--) {
        struct coll__addr bare = own[i].addr;

        coll__addr_set_scope(&bare, 0);
        if (is_same(&bare, addr))
            best = i;
    }
    return n ? coll__addr_scope(&own[best].addr) : 0;
}

void coll__net_find_scope(struct coll__addr *addr)
{
    struct ifaddrs *list;

    if (!coll__addr_is_link_local(addr) || coll__addr_scope(addr) ||
        getifaddrs(&list))
        return;
    coll__addr_set_scope(addr, find_interface(list, addr));
    freeifaddrs(list);
}

enum coll__reach coll__net_reach(int fd)
{
    struct coll__addr bound;

    return !bound_addr(fd, &bound) && coll__net_is_loopback(&bound) ? REACH_HOST
                                                                    : REACH_NET;
}

int coll__net_own_addrs(int fd, struct coll__addr addrs[COLL__MAX_ADDRS])
{
    static const struct coll__addr any = {0};
    struct own own[MOST_LINK_LOCAL + MAX_OWN];
    struct coll__addr bound;
    struct ifaddrs *list;
    int n, has_six;

    if (bound_addr(fd, &bound))
        return 0;
    if (memcmp(bound.ip, any.ip, sizeof(any.ip)) != 0) {
        addrs[0] = bound;
        coll__addr_set_scope(&addrs[0], 0);
        return 1;
    }
    if (getifaddrs(&list))
        return 0;
    has_six = bound.family == 6;
    n = list_own(list, ROUTED, has_six, own);
    if (!n) { /* a direct cable between two hosts, or a host without a network */
        n = min_int(list_own(list, LINK_LOCAL, has_six, own), MOST_LINK_LOCAL);
        n += list_own(list, LOOPBACK, has_six, own + n);
    }
    freeifaddrs(list);
    n = n < COLL__MAX_ADDRS ? n : COLL__MAX_ADDRS;
    for (int i = 0; i < n; i++) {
        addrs[i] = own[i].addr;
        coll__addr_set_scope(&addrs[i], 0);
        coll__net_set_port(&addrs[i], coll__net_port(&bound));
    }
    return n;
}
