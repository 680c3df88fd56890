/* SPDX-License-Identifier: BSD-3-Clause */
/* net_listen.c - listening sockets: which interface, which port. */
#include "lib/net/net.h"
#include "lib/net/net_addr.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 4096

static const struct coll__addr any6 = {.family = 6};
static const struct coll__addr any4 = {.family = 4};
static const struct coll__addr loop4 = {.ip = {127, 0, 0, 1}, .family = 4};
static const struct coll__addr loop6 = {.ip = {[15] = 1}, .family = 6};

void coll__net_await_words(int fd)
{
    int seconds = 10;

    /* Best effort: silent connections also end by the listener's own time limit. */
    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
}

/* Return a listening socket, or -errno. */
static int listen_on(const struct coll__addr *addr)
{
    struct sockaddr_storage sock;
    socklen_t len = coll__addr_to_sock(addr, &sock);
    int fd, rc, on = 1, is_alone = !coll__net_wants(4);

    fd = socket(sock.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (sock.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_alone, sizeof(is_alone));
    coll__net_await_words(fd);
    if (coll__net_is_loopback(addr) && coll__net_is_loopback_down(fd))
        rc = -ENETDOWN;
    else if (bind(fd, (struct sockaddr *)&sock, len) || listen(fd, BACKLOG))
        rc = -errno;
    else
        return fd;
    close(fd);
    return rc;
}

/* Listen at the first address, else at the second.  A socket for any IPv6 address
 * accepts IPv4 as well. */
static int listen_at_one(const struct coll__addr *first,
                         const struct coll__addr *second, uint16_t port)
{
    struct coll__addr addr = *first;
    int fd = -EADDRNOTAVAIL;

    coll__net_set_port(&addr, port);
    if (coll__net_wants(first->family))
        fd = listen_on(&addr);
    if (fd >= 0 || fd == -EADDRINUSE || !coll__net_wants(second->family))
        return fd;
    addr = *second;
    coll__net_set_port(&addr, port);
    return listen_on(&addr);
}

static void list_interfaces(const struct ifaddrs *list, char *text, size_t len)
{
    size_t n = 0;

    text[0] = '\0';
    for (const struct ifaddrs *i = list; i && n < len; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
            n += (size_t)snprintf(text + n, len - n, "%s%s", n ? ", " : "",
                                  i->ifa_name);
}

static int worth(const struct coll__addr *addr)
{
    return coll__addr_is_link_local(addr) ? 1 : addr->family == 6 ? 2 : 3;
}

/* Find an address of the interface that COLL_NET_INTERFACE names. */
static int interface_addr(struct coll__addr *addr)
{
    const char *name = coll__param_text(PARAM_NET_INTERFACE);
    int found = 0; /* rank of the best one: link-local, IPv6, IPv4 */
    struct coll__addr its;
    struct ifaddrs *list;
    char known[256];

    if (getifaddrs(&list)) {
        log_error("boot", "cannot list the network interfaces: %s",
                  strerror(errno));
        return COLL_ERR_SYSTEM;
    }
    for (struct ifaddrs *i = list; i; i = i->ifa_next)
        if (i->ifa_addr && !strcmp(i->ifa_name, name) &&
            !coll__addr_from_sock(i->ifa_addr, &its) &&
            coll__net_wants(its.family) && worth(&its) > found) {
            *addr = its;
            found = worth(&its);
        }
    list_interfaces(list, known, sizeof(known));
    freeifaddrs(list);
    if (found)
        return COLL_OK;
    log_error("boot",
              "COLL_NET_INTERFACE=%s: no such interface with an "
              "address%s; there are %s",
              name,
              coll__param_is_set(PARAM_NET_FAMILY) ? " of COLL_NET_FAMILY" : "",
              known);
    return COLL_ERR_INVALID;
}

/* Read FIRST-LAST, or one port; 0 to 0 if the variable is not set. */
static int port_range(long *first, long *last)
{
    const char *text = coll__param_text(PARAM_NET_PORTS);
    char *end;

    *first = *last = 0;
    if (!*text)
        return COLL_OK;
    *first = *last = strtol(text, &end, 10);
    if (end != text && *end == '-')
        *last = strtol(end + 1, &end, 10);
    if (!*end && *first >= 1 && *last >= *first && *last <= 65535)
        return COLL_OK;
    log_error("boot",
              "COLL_NET_PORTS=%s is not valid: it must be FIRST-LAST, "
              "such as 5000-5100",
              text);
    return COLL_ERR_INVALID;
}

static void log_taken(void)
{
    if (coll__param_is_set(PARAM_NET_PORTS))
        log_error("boot",
                  "no port is free within COLL_NET_PORTS=%s; give a "
                  "wider range",
                  coll__param_text(PARAM_NET_PORTS));
    else
        log_error("boot",
                  "this host has no port left to listen at; widen "
                  "net.ipv4.ip_local_port_range, or set COLL_NET_PORTS");
}

static const char *why_not(int err)
{
    return err == EADDRNOTAVAIL ? "no network interface is up; bring one up, "
                                  "such as: ip link set lo up"
                                : coll__net_error(err);
}

static int try_listen(enum coll__reach reach, const struct coll__addr *chosen,
                      uint16_t port)
{
    struct coll__addr addr = *chosen;

    if (chosen->family) {
        coll__net_set_port(&addr, port);
        return listen_on(&addr);
    }
    if (reach == REACH_NET)
        return listen_at_one(&any6, &any4, port);
    return listen_at_one(&loop4, &loop6, port);
}

/* Log the address, if other processes could connect to it. */
static int log_listening(int fd)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    char text[COLL__ADDR_TEXT];

    errno = 0;
    if (coll__net_own_addrs(fd, addrs) < 1)
        return errno ? -errno : -EADDRNOTAVAIL;
    coll__net_text(&addrs[0], text);
    log_info("boot", "listening at %s", text);
    return 0;
}

int coll__net_listen(enum coll__reach reach, int *fd)
{
    struct coll__addr chosen = {.family = 0};
    long first, last;
    int rc = port_range(&first, &last);

    if (!rc && coll__param_is_set(PARAM_NET_INTERFACE))
        rc = interface_addr(&chosen);
    if (rc)
        return rc;
    for (long port = first; port <= last; port++) {
        rc = try_listen(reach, &chosen, (uint16_t)port);
        if (rc >= 0) {
            *fd = rc;
            rc = log_listening(*fd);
            if (!rc)
                return COLL_OK;
            close(*fd);
        }
        if (rc != -EADDRINUSE && rc != -EACCES)
            break;
    }
    if (rc == -EADDRINUSE || rc == -EACCES)
        log_taken();
    else
        log_error("boot", "cannot listen for the other ranks: %s",
                  why_not(-rc));
    return COLL_ERR_SYSTEM;
}

int coll__net_listen_at(const struct coll__addr *at, int is_quiet, int *fd)
{
    struct coll__addr chosen = {.family = 0};
    uint16_t port = coll__net_port(at);
    int rc;

    if (coll__net_is_loopback(at))
        chosen = *at;
    else if (coll__param_is_set(PARAM_NET_INTERFACE) &&
             (rc = interface_addr(&chosen)))
        return rc;
    rc = try_listen(REACH_NET, &chosen, port);
    if (rc >= 0) {
        *fd = rc;
        log_listening(rc);
        return COLL_OK;
    }
    if (is_quiet)
        return COLL_ERR_SYSTEM;
    if (rc == -EADDRINUSE)
        log_error("boot",
                  "rank 0 cannot listen on port %d: it is in use by "
                  "another program; choose another port",
                  port);
    else
        log_error("boot", "rank 0 cannot listen on port %d: %s", port,
                  coll__net_error(-rc));
    return COLL_ERR_SYSTEM;
}
